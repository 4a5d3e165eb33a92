-- +goose Up
CREATE TABLE IF NOT EXISTS friend_request (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  message      VARCHAR(300)     NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_friend_request_list (from_user_id, type, update_time, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS friend_request_inbox (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_friend_request_inbox_list (to_user_id, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
