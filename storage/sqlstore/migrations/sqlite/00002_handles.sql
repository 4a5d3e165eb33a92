-- +goose Up
CREATE TABLE IF NOT EXISTS handles (
  handle     TEXT    NOT NULL,
  user_id    INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  PRIMARY KEY (handle)
) WITHOUT ROWID;
