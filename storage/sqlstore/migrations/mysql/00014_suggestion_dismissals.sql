-- +goose Up
CREATE TABLE IF NOT EXISTS suggestion_dismissals (
  user_id      BIGINT NOT NULL,
  dismissed_id BIGINT NOT NULL,
  at           BIGINT NOT NULL,
  PRIMARY KEY (user_id, dismissed_id),
  KEY idx_dismissed_at (user_id, at, dismissed_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
