-- +goose Up
CREATE TABLE IF NOT EXISTS edge_marks (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  special      TINYINT UNSIGNED NOT NULL DEFAULT 0,
  remark       VARCHAR(100)     NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_special (from_user_id, special, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
