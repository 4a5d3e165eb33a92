-- +goose Up
CREATE TABLE IF NOT EXISTS kith_leases (
  kind         TEXT    NOT NULL,
  slot         INTEGER NOT NULL,
  owner        TEXT    NOT NULL,
  leased_until INTEGER NOT NULL,
  PRIMARY KEY (kind, slot),
  UNIQUE (kind, owner)
) WITHOUT ROWID;
