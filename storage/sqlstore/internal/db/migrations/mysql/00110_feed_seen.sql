-- +goose Up
-- Up to which time users have seen their home feeds.
CREATE TABLE IF NOT EXISTS feed_seen (
  user_id BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
