-- +goose Up
ALTER TABLE user_counts ADD COLUMN post_count INTEGER NOT NULL DEFAULT 0;

CREATE TABLE IF NOT EXISTS post (
  author_id  INTEGER NOT NULL,
  post_id    INTEGER NOT NULL,
  client_key TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  media      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  edited_at  INTEGER NOT NULL DEFAULT 0,
  state      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (author_id, post_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS idx_post_key
  ON post (author_id, client_key);

CREATE INDEX IF NOT EXISTS idx_post_list
  ON post (author_id, state, created_at, post_id);

CREATE INDEX IF NOT EXISTS idx_post_latest
  ON post (state, created_at, post_id);

CREATE TABLE IF NOT EXISTS post_counts (
  author_id     INTEGER NOT NULL,
  post_id       INTEGER NOT NULL,
  comment_count INTEGER NOT NULL DEFAULT 0,
  version       INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (author_id, post_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS comment (
  author_id  INTEGER NOT NULL,
  comment_id INTEGER NOT NULL,
  post_id    INTEGER NOT NULL,
  user_id    INTEGER NOT NULL,
  client_key TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (author_id, comment_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS idx_comment_key
  ON comment (user_id, author_id, post_id, client_key);

CREATE INDEX IF NOT EXISTS idx_comment_list
  ON comment (author_id, post_id, created_at, comment_id);
