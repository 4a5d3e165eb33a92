-- +goose Up
CREATE TABLE IF NOT EXISTS users (
  user_id               INTEGER NOT NULL PRIMARY KEY,
  handle                TEXT    NOT NULL,
  name                  TEXT    NOT NULL,
  bio                   TEXT    NOT NULL DEFAULT '',
  avatar_url            TEXT    NOT NULL DEFAULT '',
  password_hash         TEXT    NULL,
  created_at            INTEGER NOT NULL,
  updated_at            INTEGER NOT NULL,
  followings_visibility INTEGER NOT NULL DEFAULT 0,
  followers_visibility  INTEGER NOT NULL DEFAULT 0,
  undiscoverable        INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS handles (
  handle     TEXT    NOT NULL,
  user_id    INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  PRIMARY KEY (handle)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS following (
  from_user_id INTEGER NOT NULL,
  to_user_id   INTEGER NOT NULL,
  type         INTEGER NOT NULL,
  update_time  INTEGER NOT NULL,
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
  PRIMARY KEY (from_user_id, to_user_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_special
  ON edge_marks (from_user_id, special, to_user_id);

CREATE TABLE IF NOT EXISTS suggestion_dismissals (
  user_id      INTEGER NOT NULL,
  dismissed_id INTEGER NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (user_id, dismissed_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idx_dismissed_at
  ON suggestion_dismissals (user_id, at, dismissed_id);

CREATE TABLE IF NOT EXISTS user_states (
  user_id     INTEGER NOT NULL PRIMARY KEY,
  state       INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL,
  password_at INTEGER NOT NULL DEFAULT 0
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
  update_time  INTEGER NOT NULL
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
