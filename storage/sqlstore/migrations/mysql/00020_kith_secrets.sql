-- +goose Up
CREATE TABLE IF NOT EXISTS kith_secrets (
  name  VARCHAR(60)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value VARBINARY(64) NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
