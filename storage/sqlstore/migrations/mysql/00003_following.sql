-- +goose Up
CREATE TABLE IF NOT EXISTS following (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_following_list (from_user_id, type, update_time, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
