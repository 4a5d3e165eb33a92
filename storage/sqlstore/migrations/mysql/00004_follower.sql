-- +goose Up
CREATE TABLE IF NOT EXISTS follower (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_follower_list (to_user_id, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
