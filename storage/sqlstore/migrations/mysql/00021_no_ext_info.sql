-- +goose Up
-- A column that no version has read or written. Only where it is still there, as in 00011.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'users' AND column_name = 'ext_info') = 0,
  'DO 0',
  'ALTER TABLE users DROP COLUMN ext_info');
PREPARE change_users FROM @change;
EXECUTE change_users;
DEALLOCATE PREPARE change_users;
