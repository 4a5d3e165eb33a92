-- +goose Up
-- What operators have done: entries are only added. owner_id is whose shard has the entry, user_id whom it is about; action is a storage.ModerationAction.
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
  KEY idx_moderation_user (user_id, at, owner_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The time of the entry by which the user is suspended; 0 for none. It may run again. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'user_states' AND column_name = 'suspended_at');
SET @change = IF(@missing, 'ALTER TABLE user_states ADD COLUMN suspended_at BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_suspended_at FROM @change;
EXECUTE add_suspended_at;
DEALLOCATE PREPARE add_suspended_at;
