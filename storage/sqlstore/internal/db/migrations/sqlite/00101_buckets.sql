-- +goose Up
-- The epoch rises with every change of the shard's buckets. Every transaction that writes reads it.
CREATE TABLE IF NOT EXISTS kith_epoch (
  id    INTEGER NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
);

-- state: 0 owned, 1 leaving, 2 closed, 3 left, 4 arriving; other is the shard at the other end of
-- the move, token names the process that moves.
CREATE TABLE IF NOT EXISTS kith_buckets (
  first_bucket INTEGER NOT NULL PRIMARY KEY,
  last_bucket  INTEGER NOT NULL,
  state        INTEGER NOT NULL,
  other        INTEGER NOT NULL,
  token        TEXT    NOT NULL,
  changed_at   INTEGER NOT NULL
);

-- Shards that have been added since the store was laid out. On shard 0 only.
CREATE TABLE IF NOT EXISTS kith_shards (
  ordinal INTEGER NOT NULL PRIMARY KEY,
  address TEXT    NOT NULL
);

-- Which rows of leaving buckets have been written.
CREATE TABLE IF NOT EXISTS kith_moved_rows (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     INTEGER NOT NULL,
  owner    INTEGER NOT NULL,
  peer     INTEGER NOT NULL,
  handle   TEXT    NOT NULL
);

-- Written first by every transaction that copies or removes rows of buckets that move.
CREATE TABLE IF NOT EXISTS kith_mover (
  id    INTEGER NOT NULL PRIMARY KEY,
  steps INTEGER NOT NULL
);

-- How far a move has copied each table to this shard. up_to is a key as JSON, or empty: all of it.
CREATE TABLE IF NOT EXISTS kith_copied (
  first_bucket INTEGER NOT NULL,
  name         TEXT    NOT NULL,
  up_to        TEXT    NOT NULL,
  PRIMARY KEY (first_bucket, name)
) WITHOUT ROWID;
