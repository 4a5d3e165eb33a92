-- +goose Up
CREATE TABLE IF NOT EXISTS kith_meta (
  id           TINYINT  NOT NULL,
  store_uuid   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  layout       INT      NOT NULL,
  shards       INT      NOT NULL,
  ordinal      INT      NOT NULL,
  first_bucket INT      NOT NULL,
  last_bucket  INT      NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
