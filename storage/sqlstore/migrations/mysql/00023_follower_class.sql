-- +goose Up
-- storage.FollowerClass of follower_count. The server computes it, so that gateways of
-- the version before, which do not know the column, keep it right. By itself: it takes
-- no time where no key comes with it.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'follower_class') > 0,
  'DO 0',
  'ALTER TABLE user_counts
     ADD COLUMN follower_class SMALLINT UNSIGNED GENERATED ALWAYS AS
       (LENGTH(GREATEST(follower_count, 0)) * 100 + LEFT(GREATEST(follower_count, 0), 2)) VIRTUAL');
PREPARE change_user_counts FROM @change;
EXECUTE change_user_counts;
DEALLOCATE PREPARE change_user_counts;
