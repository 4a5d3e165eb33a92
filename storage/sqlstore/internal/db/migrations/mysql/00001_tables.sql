-- +goose Up
-- Each statement commits by itself and may run again.

-- locked: follows of the user wait for its approval. attributes, here and below, are a product's own (storage.Attributes).
CREATE TABLE IF NOT EXISTS users (
  user_id               BIGINT           NOT NULL,
  handle                VARCHAR(30)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name                  VARCHAR(100)     NOT NULL,
  bio                   VARCHAR(500)     NOT NULL DEFAULT '',
  avatar_url            VARCHAR(500)     NOT NULL DEFAULT '',
  website               VARCHAR(500)     NOT NULL DEFAULT '',
  password_hash         VARCHAR(255)     CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at            BIGINT           NOT NULL,
  updated_at            BIGINT           NOT NULL,
  followings_visibility TINYINT UNSIGNED NOT NULL DEFAULT 0,
  followers_visibility  TINYINT UNSIGNED NOT NULL DEFAULT 0,
  undiscoverable        TINYINT UNSIGNED NOT NULL DEFAULT 0,
  locked                TINYINT UNSIGNED NOT NULL DEFAULT 0,
  attributes            VARBINARY(4096)  NOT NULL DEFAULT '',
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS handles (
  handle     VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id    BIGINT      NOT NULL,
  claimed_at BIGINT      NOT NULL,
  PRIMARY KEY (handle)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- first_at is when the first follow of a pair began, NULL while that is the last one.
CREATE TABLE IF NOT EXISTS following (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  first_at     BIGINT           NULL,
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
  post_count      BIGINT            NOT NULL DEFAULT 0,
  favorite_count  BIGINT            NOT NULL DEFAULT 0,
  total_favorited BIGINT            NOT NULL DEFAULT 0,
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
  attributes   VARBINARY(4096)  NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id),
  KEY idx_special (from_user_id, special, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- suspended_at is the time of the moderation_log's entry by which the user is suspended; 0 for none.
-- Whoever reads the changes finds what it needs in the key.
CREATE TABLE IF NOT EXISTS user_states (
  user_id      BIGINT           NOT NULL,
  state        TINYINT UNSIGNED NOT NULL,
  changed_at   BIGINT           NOT NULL,
  password_at  BIGINT           NOT NULL DEFAULT 0,
  suspended_at BIGINT           NOT NULL DEFAULT 0,
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

-- How far a move has copied each table to this shard. up_to is a key as JSON, which may have a word, or empty: all of it.
CREATE TABLE IF NOT EXISTS kith_copied (
  first_bucket INT            NOT NULL,
  name         VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  up_to        VARBINARY(100) NOT NULL,
  PRIMARY KEY (first_bucket, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- state: 0 published, 1 deleted: without text and media, but its key is taken.
CREATE TABLE IF NOT EXISTS post (
  author_id  BIGINT           NOT NULL,
  post_id    BIGINT           NOT NULL,
  client_key VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  text       VARCHAR(2000)    NOT NULL,
  media      TEXT             NOT NULL,
  created_at BIGINT           NOT NULL,
  edited_at  BIGINT           NOT NULL DEFAULT 0,
  state      TINYINT UNSIGNED NOT NULL DEFAULT 0,
  attributes VARBINARY(4096)  NOT NULL DEFAULT '',
  PRIMARY KEY (author_id, post_id),
  UNIQUE KEY idx_post_key (author_id, client_key),
  KEY idx_post_list (author_id, state, created_at, post_id),
  KEY idx_post_latest (state, created_at, post_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS post_counts (
  author_id      BIGINT NOT NULL,
  post_id        BIGINT NOT NULL,
  comment_count  BIGINT NOT NULL DEFAULT 0,
  version        BIGINT NOT NULL DEFAULT 0,
  favorite_count BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (author_id, post_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS comment (
  author_id  BIGINT       NOT NULL,
  comment_id BIGINT       NOT NULL,
  post_id    BIGINT       NOT NULL,
  user_id    BIGINT       NOT NULL,
  client_key VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  text       VARCHAR(500) NOT NULL,
  created_at BIGINT       NOT NULL,
  PRIMARY KEY (author_id, comment_id),
  UNIQUE KEY idx_comment_key (user_id, author_id, post_id, client_key),
  KEY idx_comment_list (author_id, post_id, created_at, comment_id),
  KEY idx_comment_received (author_id, created_at, comment_id, post_id, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- from_user_id has favorited the post of to_user_id.
CREATE TABLE IF NOT EXISTS favorite (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  post_id      BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id, post_id),
  KEY idx_favorite_list (from_user_id, type, update_time, post_id, to_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS favorite_inbox (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  post_id      BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, post_id),
  KEY idx_favorite_inbox_list (to_user_id, post_id, type, update_time, from_user_id),
  KEY idx_favorite_received (to_user_id, type, update_time, post_id, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

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

-- Lists of some length, as they were when the owner's counts had this version.
CREATE TABLE IF NOT EXISTS packed_short (
  owner   BIGINT           NOT NULL,
  side    TINYINT UNSIGNED NOT NULL,
  version BIGINT           NOT NULL,
  data    MEDIUMBLOB       NOT NULL,
  PRIMARY KEY (owner, side)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Its row says that the database may be written to. Dumps leave the table out, so a restored database is not written to
-- before kith shards readmit has made it again.
CREATE TABLE IF NOT EXISTS kith_admitted (id INTEGER NOT NULL PRIMARY KEY);

REPLACE INTO kith_admitted (id) VALUES (1);

-- The words of names and handles, without case and accents: see storage.WordsOf. Bytes, because spaces at the end would not count in a text.
CREATE TABLE IF NOT EXISTS user_words (
  user_id BIGINT        NOT NULL,
  word    VARBINARY(32) NOT NULL,
  PRIMARY KEY (user_id, word),
  KEY idx_user_words (word, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Up to which time users have seen something: kind is a storage.SeenKind.
CREATE TABLE IF NOT EXISTS seen (
  user_id BIGINT           NOT NULL,
  kind    TINYINT UNSIGNED NOT NULL,
  seen_at BIGINT           NOT NULL,
  PRIMARY KEY (user_id, kind)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What operators have done, and users have reported: entries are only added. owner_id is whose shard has the entry, user_id whom it is about; action is a storage.ModerationAction.
CREATE TABLE IF NOT EXISTS moderation_log (
  owner_id BIGINT           NOT NULL,
  at       BIGINT           NOT NULL,
  user_id  BIGINT           NOT NULL,
  action   TINYINT UNSIGNED NOT NULL,
  operator VARCHAR(511)     NOT NULL,
  reason   VARCHAR(500)     NOT NULL,
  ends_at  BIGINT           NOT NULL,
  number   BIGINT           NOT NULL,
  PRIMARY KEY (owner_id, at),
  KEY idx_moderation_time (at, owner_id),
  KEY idx_moderation_user (user_id, at, owner_id),
  KEY idx_moderation_about (owner_id, user_id, number, at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Edges of all declared kinds: from_user_id relates to to_user_id by a kind, until ends_at unless that is 0.
CREATE TABLE IF NOT EXISTS relation (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  kind         BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  ends_at      BIGINT           NOT NULL DEFAULT 0,
  attributes   TEXT             NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id, kind),
  KEY idx_relation_list (from_user_id, kind, type, update_time, to_user_id),
  KEY idx_relation_end (ends_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS relation_inbox (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  kind         BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, kind),
  KEY idx_relation_inbox_list (to_user_id, kind, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How many edges of a kind leave and enter an owner.
CREATE TABLE IF NOT EXISTS relation_counts (
  owner    BIGINT NOT NULL,
  kind     BIGINT NOT NULL,
  outgoing BIGINT NOT NULL DEFAULT 0,
  incoming BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, kind)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The lists of users. The number of a list is when it was created. Its members are relations of the kind 1048576 + number.
CREATE TABLE IF NOT EXISTS user_list (
  owner  BIGINT           NOT NULL,
  number BIGINT           NOT NULL,
  name   VARCHAR(60)      NOT NULL,
  public TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (owner, number)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Imports of accounts by their users, in parts: storage.ImportPart. They are gone after some days.
CREATE TABLE IF NOT EXISTS import_part (
  owner   BIGINT           NOT NULL,
  number  BIGINT           NOT NULL,
  part    BIGINT           NOT NULL,
  kind    VARCHAR(16)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line    BIGINT           NOT NULL,
  size    BIGINT           NOT NULL,
  made    BIGINT           NOT NULL,
  refused BIGINT           NOT NULL,
  done    TINYINT UNSIGNED NOT NULL,
  due_at  BIGINT           NOT NULL,
  content MEDIUMTEXT       NOT NULL,
  PRIMARY KEY (owner, number, part),
  KEY idx_import_due (due_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
