-- +goose Up
-- Whether follows of the user wait for its approval. The statement may run again. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'users' AND column_name = 'locked');
SET @change = IF(@missing, 'ALTER TABLE users ADD COLUMN locked TINYINT UNSIGNED NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_locked FROM @change;
EXECUTE add_locked;
DEALLOCATE PREPARE add_locked;
