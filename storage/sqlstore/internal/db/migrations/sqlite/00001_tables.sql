-- +goose Up
-- locked: follows of the user wait for its approval. attributes, here and below, are a product's own (storage.Attributes).
CREATE TABLE IF NOT EXISTS users (
  user_id               INTEGER NOT NULL PRIMARY KEY,
  handle                TEXT    NOT NULL,
  name                  TEXT    NOT NULL,
  bio                   TEXT    NOT NULL DEFAULT '',
  avatar_url            TEXT    NOT NULL DEFAULT '',
  website               TEXT    NOT NULL DEFAULT '',
  password_hash         TEXT    NULL,
  created_at            INTEGER NOT NULL,
  updated_at            INTEGER NOT NULL,
  followings_visibility INTEGER NOT NULL DEFAULT 0,
  followers_visibility  INTEGER NOT NULL DEFAULT 0,
  undiscoverable        INTEGER NOT NULL DEFAULT 0,
  locked                INTEGER NOT NULL DEFAULT 0,
  attributes            TEXT    NOT NULL DEFAULT ''
);

CREATE TABLE IF NOT EXISTS handles (
  handle     TEXT    NOT NULL,
  user_id    INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  PRIMARY KEY (handle)
) WITHOUT ROWID;

-- first_at is when the first follow of a pair began, NULL while that is the last one.
CREATE TABLE IF NOT EXISTS following (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  first_at     INTEGER NULL,
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_following_list
  ON following (from_user_id, type, update_time, to_user_id);

CREATE TABLE IF NOT EXISTS follower (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_follower_list
  ON follower (to_user_id, type, update_time, from_user_id);

-- follower_class is as on servers.
CREATE TABLE IF NOT EXISTS user_counts (
  user_id         INTEGER NOT NULL PRIMARY KEY,
  following_count INTEGER NOT NULL DEFAULT 0,
  follower_count  INTEGER NOT NULL DEFAULT 0,
  version         INTEGER NOT NULL DEFAULT 0,
  friend_count    INTEGER NOT NULL DEFAULT 0,
  active_day      INTEGER NOT NULL DEFAULT 0,
  packed          INTEGER NOT NULL DEFAULT 0,
  packed_version  INTEGER NOT NULL DEFAULT 0,
  post_count      INTEGER NOT NULL DEFAULT 0,
  favorite_count  INTEGER NOT NULL DEFAULT 0,
  total_favorited INTEGER NOT NULL DEFAULT 0,
  follower_class  INTEGER GENERATED ALWAYS AS
    (length(max(follower_count, 0)) * 100 + substr(max(follower_count, 0), 1, 2)) VIRTUAL
);

CREATE INDEX IF NOT EXISTS idx_popular
  ON user_counts (follower_class, active_day, user_id);

CREATE TABLE IF NOT EXISTS friend_request (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  message      TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_friend_request_list
  ON friend_request (from_user_id, type, update_time, to_user_id);

CREATE TABLE IF NOT EXISTS friend_request_inbox (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_friend_request_inbox_list
  ON friend_request_inbox (to_user_id, type, update_time, from_user_id);

CREATE TABLE IF NOT EXISTS edge_marks (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  special      INTEGER NOT NULL DEFAULT 0,
  remark       TEXT    NOT NULL DEFAULT '',
  attributes   TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_special
  ON edge_marks (from_user_id, special, to_user_id);

-- suspended_at is the time of the moderation_log's entry by which the user is suspended; 0 for none.
CREATE TABLE IF NOT EXISTS user_states (
  user_id      INTEGER NOT NULL PRIMARY KEY,
  state        INTEGER NOT NULL,
  changed_at   INTEGER NOT NULL,
  password_at  INTEGER NOT NULL DEFAULT 0,
  suspended_at INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS idx_state_changes
  ON user_states (changed_at, user_id, state, password_at);

CREATE TABLE IF NOT EXISTS packed_list (
  owner    INTEGER NOT NULL,
  side     INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  PRIMARY KEY (owner, side)
) WITHOUT ROWID;

-- With a rowid: rows of 20 kB do not belong into the tree that is searched.
CREATE TABLE IF NOT EXISTS packed_chunk (
  owner      INTEGER NOT NULL,
  side       INTEGER NOT NULL,
  first_peer INTEGER NOT NULL,
  data       BLOB    NOT NULL,
  PRIMARY KEY (owner, side, first_peer)
);

CREATE TABLE IF NOT EXISTS packed_change (
  owner       INTEGER NOT NULL,
  side        INTEGER NOT NULL,
  peer        INTEGER NOT NULL,
  type        INTEGER NOT NULL,
  update_time INTEGER NOT NULL,
  PRIMARY KEY (owner, side, peer)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS relation_log (
  position     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  side         INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  post_id      INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS kith_meta (
  id           INTEGER NOT NULL PRIMARY KEY,
  store_uuid   TEXT    NOT NULL,
  layout       INTEGER NOT NULL,
  shards       INTEGER NOT NULL,
  ordinal      INTEGER NOT NULL,
  first_bucket INTEGER NOT NULL,
  last_bucket  INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS kith_checkpoints (
  name  TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS kith_leases (
  kind         TEXT    NOT NULL,
  slot         INTEGER NOT NULL,
  owner        TEXT    NOT NULL,
  leased_until INTEGER NOT NULL,
  PRIMARY KEY (kind, slot),
  UNIQUE (kind, owner)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS kith_secrets (
  name  TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

-- The epoch rises with every change of the shard's buckets. Every transaction that writes reads it.
CREATE TABLE IF NOT EXISTS kith_epoch (
  id    INTEGER NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
);

-- state: 0 owned, 1 leaving, 2 closed, 3 left, 4 arriving; other is the shard at the other end of
-- the move, token names the process that moves.
CREATE TABLE IF NOT EXISTS kith_buckets (
  first_bucket INTEGER NOT NULL PRIMARY KEY,
  last_bucket  INTEGER NOT NULL,
  state        INTEGER NOT NULL,
  other        INTEGER NOT NULL,
  token        TEXT    NOT NULL,
  changed_at   INTEGER NOT NULL
);

-- Shards that have been added since the store was laid out. On shard 0 only.
CREATE TABLE IF NOT EXISTS kith_shards (
  ordinal INTEGER NOT NULL PRIMARY KEY,
  address TEXT    NOT NULL
);

-- Which rows of leaving buckets have been written.
CREATE TABLE IF NOT EXISTS kith_moved_rows (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     INTEGER NOT NULL,
  owner    INTEGER NOT NULL,
  peer     INTEGER NOT NULL,
  handle   TEXT    NOT NULL
);

-- Written first by every transaction that copies or removes rows of buckets that move.
CREATE TABLE IF NOT EXISTS kith_mover (
  id    INTEGER NOT NULL PRIMARY KEY,
  steps INTEGER NOT NULL
);

-- How far a move has copied each table to this shard. up_to is a key as JSON, or empty: all of it.
CREATE TABLE IF NOT EXISTS kith_copied (
  first_bucket INTEGER NOT NULL,
  name         TEXT    NOT NULL,
  up_to        TEXT    NOT NULL,
  PRIMARY KEY (first_bucket, name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS post (
  author_id  INTEGER NOT NULL,
  post_id    INTEGER NOT NULL,
  client_key TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  media      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  edited_at  INTEGER NOT NULL DEFAULT 0,
  state      INTEGER NOT NULL DEFAULT 0,
  attributes TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (author_id, post_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS idx_post_key
  ON post (author_id, client_key);

CREATE INDEX IF NOT EXISTS idx_post_list
  ON post (author_id, state, created_at, post_id);

CREATE INDEX IF NOT EXISTS idx_post_latest
  ON post (state, created_at, post_id);

CREATE TABLE IF NOT EXISTS post_counts (
  author_id      INTEGER NOT NULL,
  post_id        INTEGER NOT NULL,
  comment_count  INTEGER NOT NULL DEFAULT 0,
  version        INTEGER NOT NULL DEFAULT 0,
  favorite_count INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (author_id, post_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS comment (
  author_id  INTEGER NOT NULL,
  comment_id INTEGER NOT NULL,
  post_id    INTEGER NOT NULL,
  user_id    INTEGER NOT NULL,
  client_key TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (author_id, comment_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS idx_comment_key
  ON comment (user_id, author_id, post_id, client_key);

CREATE INDEX IF NOT EXISTS idx_comment_list
  ON comment (author_id, post_id, created_at, comment_id);

CREATE INDEX IF NOT EXISTS idx_comment_received
  ON comment (author_id, created_at, comment_id, post_id, user_id);

-- from_user_id has favorited the post of to_user_id.
CREATE TABLE IF NOT EXISTS favorite (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  post_id      INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id, post_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_favorite_list
  ON favorite (from_user_id, type, update_time, post_id, to_user_id);

CREATE TABLE IF NOT EXISTS favorite_inbox (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  post_id      INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, post_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_favorite_inbox_list
  ON favorite_inbox (to_user_id, post_id, type, update_time, from_user_id);

CREATE INDEX IF NOT EXISTS idx_favorite_received
  ON favorite_inbox (to_user_id, type, update_time, post_id, from_user_id);

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

-- Lists of some length, as they were when the owner's counts had this version. With a rowid: values of some
-- kilobytes do not belong into the tree that is searched.
CREATE TABLE IF NOT EXISTS packed_short (
  owner   INTEGER NOT NULL,
  side    INTEGER NOT NULL,
  version INTEGER NOT NULL,
  data    BLOB    NOT NULL,
  PRIMARY KEY (owner, side)
);

-- Its row says that the database may be written to. Dumps leave the table out, so a restored database is not written to
-- before kith shards readmit has made it again.
CREATE TABLE IF NOT EXISTS kith_admitted (id INTEGER NOT NULL PRIMARY KEY);

REPLACE INTO kith_admitted (id) VALUES (1);

-- The words of names and handles, without case and accents: see storage.WordsOf.
CREATE TABLE IF NOT EXISTS user_words (
  user_id INTEGER NOT NULL,
  word    TEXT    NOT NULL,
  PRIMARY KEY (user_id, word)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_user_words
ON user_words (word, user_id);

-- Up to which time users have seen something: kind is a storage.SeenKind.
CREATE TABLE IF NOT EXISTS seen (
  user_id INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, kind)
) WITHOUT ROWID;

-- What operators have done, and users have reported: entries are only added. owner_id is whose shard has the entry, user_id whom it is about; action is a storage.ModerationAction.
CREATE TABLE IF NOT EXISTS moderation_log (
  owner_id INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  user_id  INTEGER NOT NULL,
  action   INTEGER NOT NULL,
  operator TEXT    NOT NULL,
  reason   TEXT    NOT NULL,
  ends_at  INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  PRIMARY KEY (owner_id, at)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_moderation_time
  ON moderation_log (at, owner_id);

CREATE INDEX IF NOT EXISTS idx_moderation_user
  ON moderation_log (user_id, at, owner_id);

CREATE INDEX IF NOT EXISTS idx_moderation_about
  ON moderation_log (owner_id, user_id, number, at);

-- Edges of all declared kinds: from_user_id relates to to_user_id by a kind, until ends_at unless that is 0.
CREATE TABLE IF NOT EXISTS relation (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  kind         INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  ends_at      INTEGER NOT NULL DEFAULT 0,
  attributes   TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (from_user_id, to_user_id, kind)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_relation_list
  ON relation (from_user_id, kind, type, update_time, to_user_id);

CREATE INDEX IF NOT EXISTS idx_relation_end
  ON relation (ends_at) WHERE ends_at > 0;

CREATE TABLE IF NOT EXISTS relation_inbox (
  to_user_id   INTEGER NOT NULL,
  from_user_id INTEGER NOT NULL,
  kind         INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, kind)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_relation_inbox_list
  ON relation_inbox (to_user_id, kind, type, update_time, from_user_id);

-- How many edges of a kind leave and enter an owner.
CREATE TABLE IF NOT EXISTS relation_counts (
  owner    INTEGER NOT NULL,
  kind     INTEGER NOT NULL,
  outgoing INTEGER NOT NULL DEFAULT 0,
  incoming INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, kind)
) WITHOUT ROWID;

-- The lists of users. The number of a list is when it was created. Its members are relations of the kind 1048576 + number.
CREATE TABLE IF NOT EXISTS user_list (
  owner  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  name   TEXT    NOT NULL,
  public INTEGER NOT NULL,
  PRIMARY KEY (owner, number)
) WITHOUT ROWID;

-- Imports of accounts by their users, in parts: storage.ImportPart. They are gone after some days.
CREATE TABLE IF NOT EXISTS import_part (
  owner   INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  part    INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  line    INTEGER NOT NULL,
  size    INTEGER NOT NULL,
  made    INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  done    INTEGER NOT NULL,
  due_at  INTEGER NOT NULL,
  content TEXT    NOT NULL,
  PRIMARY KEY (owner, number, part)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_import_due
  ON import_part (due_at);
