-- +goose Up
CREATE TABLE IF NOT EXISTS friend_request (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  message      TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_friend_request_list
  ON friend_request (from_user_id, type, update_time, to_user_id);

CREATE TABLE IF NOT EXISTS friend_request_inbox (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_friend_request_inbox_list
  ON friend_request_inbox (to_user_id, type, update_time, from_user_id);
