-- +goose Up
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
