-- +goose Up
CREATE TABLE IF NOT EXISTS packed_change (
  owner       BIGINT           NOT NULL,
  side        TINYINT UNSIGNED NOT NULL,
  peer        BIGINT           NOT NULL,
  type        TINYINT UNSIGNED NOT NULL,
  update_time BIGINT           NOT NULL,
  PRIMARY KEY (owner, side, peer)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
