-- +goose Up
-- The lists of users. The number of a list is when it was created. Its members are relations of the kind 1048576 + number.
CREATE TABLE IF NOT EXISTS user_list (
  owner  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  name   TEXT    NOT NULL,
  public INTEGER NOT NULL,
  PRIMARY KEY (owner, number)
) WITHOUT ROWID;
