-- +goose Up
CREATE TABLE IF NOT EXISTS packed_chunk (
  owner      BIGINT           NOT NULL,
  side       TINYINT UNSIGNED NOT NULL,
  first_peer BIGINT           NOT NULL,
  data       MEDIUMBLOB       NOT NULL,
  PRIMARY KEY (owner, side, first_peer)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
