-- +goose Up
CREATE TABLE IF NOT EXISTS user_states (
  user_id    INTEGER NOT NULL PRIMARY KEY,
  state      INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS idx_state_changes
  ON user_states (changed_at, user_id, state);
