-- +goose Up
ALTER TABLE user_counts ADD COLUMN active_day INTEGER NOT NULL DEFAULT 0;

CREATE INDEX IF NOT EXISTS idx_active
  ON user_counts (active_day, user_id);
