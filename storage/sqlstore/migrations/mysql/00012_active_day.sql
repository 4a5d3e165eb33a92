-- +goose Up
-- Column and key in one statement, as in 00011.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'active_day') > 0,
  'DO 0',
  'ALTER TABLE user_counts
     ADD COLUMN active_day INT NOT NULL DEFAULT 0,
     ADD KEY idx_active (active_day, user_id)');
PREPARE change_user_counts FROM @change;
EXECUTE change_user_counts;
DEALLOCATE PREPARE change_user_counts;
