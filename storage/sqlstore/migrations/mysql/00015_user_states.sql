-- +goose Up
CREATE TABLE IF NOT EXISTS user_states (
  user_id    BIGINT           NOT NULL,
  state      TINYINT UNSIGNED NOT NULL,
  changed_at BIGINT           NOT NULL,
  PRIMARY KEY (user_id),
  KEY idx_state_changes (changed_at, user_id, state)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
