-- +goose Up
ALTER TABLE user_counts ADD COLUMN favorite_count INTEGER NOT NULL DEFAULT 0;

ALTER TABLE user_counts ADD COLUMN total_favorited INTEGER NOT NULL DEFAULT 0;

ALTER TABLE post_counts ADD COLUMN favorite_count INTEGER NOT NULL DEFAULT 0;

ALTER TABLE relation_log ADD COLUMN post_id INTEGER NOT NULL DEFAULT 0;

-- from_user_id has favorited the post of to_user_id.
CREATE TABLE IF NOT EXISTS favorite (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  post_id      INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id, post_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_favorite_list
  ON favorite (from_user_id, type, update_time, post_id, to_user_id);

CREATE TABLE IF NOT EXISTS favorite_inbox (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  post_id      INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, post_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_favorite_inbox_list
  ON favorite_inbox (to_user_id, post_id, type, update_time, from_user_id);
