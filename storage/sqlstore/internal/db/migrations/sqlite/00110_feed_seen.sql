-- +goose Up
-- Up to which time users have seen their home feeds.
CREATE TABLE IF NOT EXISTS feed_seen (
  user_id INTEGER NOT NULL PRIMARY KEY,
  seen_at INTEGER NOT NULL
);
