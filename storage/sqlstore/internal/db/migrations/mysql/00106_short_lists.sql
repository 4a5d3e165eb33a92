-- +goose Up
-- Lists of some length, as they were when the owner's counts had this version.
CREATE TABLE IF NOT EXISTS packed_short (
  owner   BIGINT           NOT NULL,
  side    TINYINT UNSIGNED NOT NULL,
  version BIGINT           NOT NULL,
  data    MEDIUMBLOB       NOT NULL,
  PRIMARY KEY (owner, side)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
