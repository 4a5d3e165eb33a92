-- +goose Up
CREATE TABLE IF NOT EXISTS kith_checkpoints (
  name  TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;
