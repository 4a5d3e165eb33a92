-- +goose Up
CREATE TABLE IF NOT EXISTS users (
  user_id       BIGINT       NOT NULL,
  handle        VARCHAR(30)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name          VARCHAR(100) NOT NULL,
  bio           VARCHAR(500) NOT NULL DEFAULT '',
  avatar_url    VARCHAR(500) NOT NULL DEFAULT '',
  password_hash VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at    BIGINT       NOT NULL,
  updated_at    BIGINT       NOT NULL,
  ext_info      JSON         NULL,
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
