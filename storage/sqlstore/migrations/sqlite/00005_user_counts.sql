-- +goose Up
CREATE TABLE IF NOT EXISTS user_counts (
  user_id         INTEGER NOT NULL PRIMARY KEY,
  following_count INTEGER NOT NULL DEFAULT 0,
  follower_count  INTEGER NOT NULL DEFAULT 0,
  version         INTEGER NOT NULL DEFAULT 0
);
