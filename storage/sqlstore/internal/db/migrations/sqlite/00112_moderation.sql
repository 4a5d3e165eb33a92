-- +goose Up
-- What operators have done: entries are only added. owner_id is whose shard has the entry, user_id whom it is about; action is a storage.ModerationAction.
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

-- The time of the entry by which the user is suspended; 0 for none.
ALTER TABLE user_states ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
