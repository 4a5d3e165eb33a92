-- +goose Up
CREATE TABLE IF NOT EXISTS relation_log (
  position     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  side         INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL
);
