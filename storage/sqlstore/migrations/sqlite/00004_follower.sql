-- +goose Up
CREATE TABLE IF NOT EXISTS follower (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_follower_list
  ON follower (to_user_id, type, update_time, from_user_id);
