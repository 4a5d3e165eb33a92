-- +goose Up
-- storage.FollowerClass of follower_count, as in mysql/00023.
ALTER TABLE user_counts ADD COLUMN follower_class INTEGER GENERATED ALWAYS AS
  (length(max(follower_count, 0)) * 100 + substr(max(follower_count, 0), 1, 2)) VIRTUAL;

CREATE INDEX IF NOT EXISTS idx_popular
  ON user_counts (follower_class, active_day, user_id);

DROP INDEX IF EXISTS idx_active;
