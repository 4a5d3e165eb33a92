-- +goose Up
-- digest is storage.Identity.Digest; issuer and subject are compared by the program, byte by byte.
CREATE TABLE IF NOT EXISTS identities (
  digest    VARCHAR(30)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id   BIGINT       NOT NULL,
  issuer    VARCHAR(255) NOT NULL,
  subject   VARCHAR(255) NOT NULL,
  linked_at BIGINT       NOT NULL,
  PRIMARY KEY (digest),
  KEY idx_identity_user (user_id, digest)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
