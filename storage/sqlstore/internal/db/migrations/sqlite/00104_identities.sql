-- +goose Up
-- digest is storage.Identity.Digest; issuer and subject are compared by the program, byte by byte.
CREATE TABLE IF NOT EXISTS identities (
  digest    TEXT    NOT NULL,
  user_id   INTEGER NOT NULL,
  issuer    TEXT    NOT NULL,
  subject   TEXT    NOT NULL,
  linked_at INTEGER NOT NULL,
  PRIMARY KEY (digest)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_identity_user
  ON identities (user_id, digest);
