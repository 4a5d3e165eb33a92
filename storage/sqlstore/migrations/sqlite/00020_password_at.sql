-- +goose Up
ALTER TABLE user_states ADD COLUMN password_at INTEGER NOT NULL DEFAULT 0;

DROP INDEX IF EXISTS idx_state_changes;

CREATE INDEX IF NOT EXISTS idx_state_changes
  ON user_states (changed_at, user_id, state, password_at);
