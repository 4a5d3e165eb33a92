-- +goose Up
-- Only gateways of the version before have read it, once a minute.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.statistics
   WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND index_name = 'idx_active') = 0,
  'DO 0',
  'ALTER TABLE user_counts DROP KEY idx_active');
PREPARE change_user_counts FROM @change;
EXECUTE change_user_counts;
DEALLOCATE PREPARE change_user_counts;
