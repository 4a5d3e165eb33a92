-- +goose Up
CREATE TABLE IF NOT EXISTS users (
  user_id       INTEGER NOT NULL PRIMARY KEY,
  handle        TEXT    NOT NULL,
  name          TEXT    NOT NULL,
  bio           TEXT    NOT NULL DEFAULT '',
  avatar_url    TEXT    NOT NULL DEFAULT '',
  password_hash TEXT    NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  ext_info      TEXT    NULL
);
