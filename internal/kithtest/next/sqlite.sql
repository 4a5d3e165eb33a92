-- +goose Up
-- All of it is one transaction.
CREATE TABLE IF NOT EXISTS next_note (
  user_id INTEGER NOT NULL PRIMARY KEY,
  note    TEXT    NOT NULL
);

ALTER TABLE following ADD COLUMN next_at INTEGER NULL;
