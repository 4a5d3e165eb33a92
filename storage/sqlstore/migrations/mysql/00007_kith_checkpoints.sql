-- +goose Up
CREATE TABLE IF NOT EXISTS kith_checkpoints (
  name  VARCHAR(190) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value MEDIUMBLOB   NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
