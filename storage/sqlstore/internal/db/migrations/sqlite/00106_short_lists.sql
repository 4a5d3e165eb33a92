-- +goose Up
-- Lists of some length, as they were when the owner's counts had this version. With a rowid: values of some
-- kilobytes do not belong into the tree that is searched.
CREATE TABLE IF NOT EXISTS packed_short (
  owner   INTEGER NOT NULL,
  side    INTEGER NOT NULL,
  version INTEGER NOT NULL,
  data    BLOB    NOT NULL,
  PRIMARY KEY (owner, side)
);
