-- +goose Up
CREATE TABLE IF NOT EXISTS user_counts (
  user_id         BIGINT NOT NULL,
  following_count BIGINT NOT NULL DEFAULT 0,
  follower_count  BIGINT NOT NULL DEFAULT 0,
  version         BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
