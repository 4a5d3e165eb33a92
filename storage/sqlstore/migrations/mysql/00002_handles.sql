-- +goose Up
CREATE TABLE IF NOT EXISTS handles (
  handle     VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id    BIGINT      NOT NULL,
  claimed_at BIGINT      NOT NULL,
  PRIMARY KEY (handle)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
