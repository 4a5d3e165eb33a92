-- +goose Up
CREATE TABLE IF NOT EXISTS packed_list (
  owner    BIGINT           NOT NULL,
  side     TINYINT UNSIGNED NOT NULL,
  began_at BIGINT           NOT NULL,
  PRIMARY KEY (owner, side)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
