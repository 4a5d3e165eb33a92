-- +goose Up
CREATE TABLE IF NOT EXISTS kith_meta (
  id           INTEGER NOT NULL PRIMARY KEY,
  store_uuid   TEXT    NOT NULL,
  layout       INTEGER NOT NULL,
  shards       INTEGER NOT NULL,
  ordinal      INTEGER NOT NULL,
  first_bucket INTEGER NOT NULL,
  last_bucket  INTEGER NOT NULL
);
