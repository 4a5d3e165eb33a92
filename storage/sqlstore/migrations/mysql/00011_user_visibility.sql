-- +goose Up
-- One statement changes the table, and only where it has not been changed: MySQL
-- knows no ADD COLUMN IF NOT EXISTS.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'users' AND column_name = 'undiscoverable') > 0,
  'DO 0',
  'ALTER TABLE users
     ADD COLUMN followings_visibility TINYINT UNSIGNED NOT NULL DEFAULT 0,
     ADD COLUMN followers_visibility  TINYINT UNSIGNED NOT NULL DEFAULT 0,
     ADD COLUMN undiscoverable        TINYINT UNSIGNED NOT NULL DEFAULT 0');
PREPARE change_users FROM @change;
EXECUTE change_users;
DEALLOCATE PREPARE change_users;
