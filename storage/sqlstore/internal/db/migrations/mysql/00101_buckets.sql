-- +goose Up
-- Each statement commits by itself and may run again.

-- The epoch rises with every change of the shard's buckets. Every transaction that writes
-- reads it under a shared lock.
CREATE TABLE IF NOT EXISTS kith_epoch (
  id    TINYINT NOT NULL,
  epoch BIGINT  NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- state: 0 owned, 1 leaving, 2 closed, 3 left, 4 arriving; other is the shard at the other end of
-- the move, token names the process that moves.
CREATE TABLE IF NOT EXISTS kith_buckets (
  first_bucket INT              NOT NULL,
  last_bucket  INT              NOT NULL,
  state        TINYINT UNSIGNED NOT NULL,
  other        INT              NOT NULL,
  token        CHAR(36)         CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  changed_at   BIGINT           NOT NULL,
  PRIMARY KEY (first_bucket)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Shards that have been added since the store was laid out. On shard 0 only.
CREATE TABLE IF NOT EXISTS kith_shards (
  ordinal INT           NOT NULL,
  address VARCHAR(1000) NOT NULL,
  PRIMARY KEY (ordinal)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Which rows of leaving buckets have been written.
CREATE TABLE IF NOT EXISTS kith_moved_rows (
  position BIGINT           NOT NULL AUTO_INCREMENT,
  kind     TINYINT UNSIGNED NOT NULL,
  owner    BIGINT           NOT NULL,
  peer     BIGINT           NOT NULL,
  handle   VARCHAR(30)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (position)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Written first by every transaction that copies or removes rows of buckets that move: whoever
-- reads the binlog knows by it that nothing has been followed or unfollowed.
CREATE TABLE IF NOT EXISTS kith_mover (
  id    TINYINT NOT NULL,
  steps BIGINT  NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How far a move has copied each table to this shard. up_to is a key as JSON, or empty: all of it.
CREATE TABLE IF NOT EXISTS kith_copied (
  first_bucket INT          NOT NULL,
  name         VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  up_to        VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (first_bucket, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
