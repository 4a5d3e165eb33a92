-- +goose Up
-- Both columns in one statement, as in 00011.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'packed') > 0,
  'DO 0',
  'ALTER TABLE user_counts
     ADD COLUMN packed TINYINT UNSIGNED NOT NULL DEFAULT 0,
     ADD COLUMN packed_version BIGINT NOT NULL DEFAULT 0');
PREPARE change_user_counts FROM @change;
EXECUTE change_user_counts;
DEALLOCATE PREPARE change_user_counts;
