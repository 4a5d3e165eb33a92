-- +goose Up
-- It is made while others write, 5 s for a million users.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.statistics
   WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND index_name = 'idx_popular') > 0,
  'DO 0',
  'ALTER TABLE user_counts ADD KEY idx_popular (follower_class, active_day, user_id)');
PREPARE change_user_counts FROM @change;
EXECUTE change_user_counts;
DEALLOCATE PREPARE change_user_counts;
