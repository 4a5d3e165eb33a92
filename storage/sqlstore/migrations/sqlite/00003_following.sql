-- +goose Up
CREATE TABLE IF NOT EXISTS following (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_following_list
  ON following (from_user_id, type, update_time, to_user_id);
