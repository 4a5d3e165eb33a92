-- +goose Up
-- Each statement commits by itself and may run again.
CREATE TABLE IF NOT EXISTS users (
  user_id               BIGINT           NOT NULL,
  handle                VARCHAR(30)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name                  VARCHAR(100)     NOT NULL,
  bio                   VARCHAR(500)     NOT NULL DEFAULT '',
  avatar_url            VARCHAR(500)     NOT NULL DEFAULT '',
  password_hash         VARCHAR(255)     CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at            BIGINT           NOT NULL,
  updated_at            BIGINT           NOT NULL,
  followings_visibility TINYINT UNSIGNED NOT NULL DEFAULT 0,
  followers_visibility  TINYINT UNSIGNED NOT NULL DEFAULT 0,
  undiscoverable        TINYINT UNSIGNED NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS handles (
  handle     VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id    BIGINT      NOT NULL,
  claimed_at BIGINT      NOT NULL,
  PRIMARY KEY (handle)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS following (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_following_list (from_user_id, type, update_time, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS follower (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_follower_list (to_user_id, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- follower_class is the number of digits of follower_count times 100, and its first two
-- digits. The server computes it, so no statement can leave it behind.
CREATE TABLE IF NOT EXISTS user_counts (
  user_id         BIGINT            NOT NULL,
  following_count BIGINT            NOT NULL DEFAULT 0,
  follower_count  BIGINT            NOT NULL DEFAULT 0,
  version         BIGINT            NOT NULL DEFAULT 0,
  friend_count    BIGINT            NOT NULL DEFAULT 0,
  active_day      INT               NOT NULL DEFAULT 0,
  packed          TINYINT UNSIGNED  NOT NULL DEFAULT 0,
  packed_version  BIGINT            NOT NULL DEFAULT 0,
  follower_class  SMALLINT UNSIGNED GENERATED ALWAYS AS
    (LENGTH(GREATEST(follower_count, 0)) * 100 + LEFT(GREATEST(follower_count, 0), 2)) VIRTUAL,
  PRIMARY KEY (user_id),
  KEY idx_popular (follower_class, active_day, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS friend_request (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  message      VARCHAR(300)     NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_friend_request_list (from_user_id, type, update_time, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS friend_request_inbox (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id),
  KEY idx_friend_request_inbox_list (to_user_id, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS edge_marks (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  special      TINYINT UNSIGNED NOT NULL DEFAULT 0,
  remark       VARCHAR(100)     NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_special (from_user_id, special, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS suggestion_dismissals (
  user_id      BIGINT NOT NULL,
  dismissed_id BIGINT NOT NULL,
  at           BIGINT NOT NULL,
  PRIMARY KEY (user_id, dismissed_id),
  KEY idx_dismissed_at (user_id, at, dismissed_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Whoever reads the changes finds all columns in the key.
CREATE TABLE IF NOT EXISTS user_states (
  user_id     BIGINT           NOT NULL,
  state       TINYINT UNSIGNED NOT NULL,
  changed_at  BIGINT           NOT NULL,
  password_at BIGINT           NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id),
  KEY idx_state_changes (changed_at, user_id, state, password_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS packed_list (
  owner    BIGINT           NOT NULL,
  side     TINYINT UNSIGNED NOT NULL,
  began_at BIGINT           NOT NULL,
  PRIMARY KEY (owner, side)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS packed_chunk (
  owner      BIGINT           NOT NULL,
  side       TINYINT UNSIGNED NOT NULL,
  first_peer BIGINT           NOT NULL,
  data       MEDIUMBLOB       NOT NULL,
  PRIMARY KEY (owner, side, first_peer)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS packed_change (
  owner       BIGINT           NOT NULL,
  side        TINYINT UNSIGNED NOT NULL,
  peer        BIGINT           NOT NULL,
  type        TINYINT UNSIGNED NOT NULL,
  update_time BIGINT           NOT NULL,
  PRIMARY KEY (owner, side, peer)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

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

CREATE TABLE IF NOT EXISTS kith_checkpoints (
  name  VARCHAR(190) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value MEDIUMBLOB   NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS kith_leases (
  kind         VARCHAR(60)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  slot         INT          NOT NULL,
  owner        VARCHAR(120) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  leased_until BIGINT       NOT NULL,
  PRIMARY KEY (kind, slot),
  UNIQUE KEY idx_lease_owner (kind, owner)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS kith_secrets (
  name  VARCHAR(60)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value VARBINARY(64) NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
