-- +goose Up
-- On shard 0 only: manifests of trusted documents. digest is the SHA-256 of value, a gzipped JSON object of ids and texts.
CREATE TABLE IF NOT EXISTS kith_documents (
  name      TEXT    NOT NULL,
  digest    TEXT    NOT NULL,
  documents INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  added_at  INTEGER NOT NULL,
  value     BLOB    NOT NULL,
  PRIMARY KEY (name)
);
