-- +goose Up
-- Each statement commits by itself and may run again.
CREATE TABLE IF NOT EXISTS next_note (
  user_id BIGINT       NOT NULL,
  note    VARCHAR(100) NOT NULL,
  PRIMARY KEY (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'following' AND column_name = 'next_at');
SET @change = IF(@missing, 'ALTER TABLE following ADD COLUMN next_at BIGINT NULL', 'DO 0');
PREPARE add_next_at FROM @change;
EXECUTE add_next_at;
DEALLOCATE PREPARE add_next_at;
