-- +goose Up
CREATE TABLE IF NOT EXISTS edge_marks (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  special      INTEGER NOT NULL DEFAULT 0,
  remark       TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_special
  ON edge_marks (from_user_id, special, to_user_id);
