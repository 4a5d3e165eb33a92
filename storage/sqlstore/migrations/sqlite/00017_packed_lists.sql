-- +goose Up
ALTER TABLE user_counts ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE user_counts ADD COLUMN packed_version INTEGER NOT NULL DEFAULT 0;

CREATE TABLE IF NOT EXISTS packed_list (
  owner    INTEGER NOT NULL,
  side     INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  PRIMARY KEY (owner, side)
) WITHOUT ROWID;

-- With a rowid: rows of 20 kB do not belong into the tree that is searched.
CREATE TABLE IF NOT EXISTS packed_chunk (
  owner      INTEGER NOT NULL,
  side       INTEGER NOT NULL,
  first_peer INTEGER NOT NULL,
  data       BLOB    NOT NULL,
  PRIMARY KEY (owner, side, first_peer)
);

CREATE TABLE IF NOT EXISTS packed_change (
  owner       INTEGER NOT NULL,
  side        INTEGER NOT NULL,
  peer        INTEGER NOT NULL,
  type        INTEGER NOT NULL,
  update_time INTEGER NOT NULL,
  PRIMARY KEY (owner, side, peer)
) WITHOUT ROWID;
