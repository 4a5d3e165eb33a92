-- +goose Up
CREATE TABLE IF NOT EXISTS kith_leases (
  kind       VARCHAR(60)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  slot       INT          NOT NULL,
  owner      VARCHAR(120) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  leased_until BIGINT     NOT NULL,
  PRIMARY KEY (kind, slot),
  UNIQUE KEY idx_lease_owner (kind, owner)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
