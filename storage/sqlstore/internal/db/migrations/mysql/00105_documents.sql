-- +goose Up
-- On shard 0 only: manifests of trusted documents. digest is the SHA-256 of value, a gzipped JSON object of ids and texts.
CREATE TABLE IF NOT EXISTS kith_documents (
  name      VARCHAR(190) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest    CHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  documents INT          NOT NULL,
  bytes     INT          NOT NULL,
  added_at  BIGINT       NOT NULL,
  value     MEDIUMBLOB   NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
