-- +goose Up
CREATE TABLE IF NOT EXISTS suggestion_dismissals (
  user_id      INTEGER NOT NULL,
  dismissed_id INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (user_id, dismissed_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_dismissed_at
  ON suggestion_dismissals (user_id, at, dismissed_id);
