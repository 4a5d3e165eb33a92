-- +goose Up
-- Each statement commits by itself and may run again. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'post_count');
SET @change = IF(@missing, 'ALTER TABLE user_counts ADD COLUMN post_count BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_post_count FROM @change;
EXECUTE add_post_count;
DEALLOCATE PREPARE add_post_count;

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
  PRIMARY KEY (author_id, post_id),
  UNIQUE KEY idx_post_key (author_id, client_key),
  KEY idx_post_list (author_id, state, created_at, post_id),
  KEY idx_post_latest (state, created_at, post_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS post_counts (
  author_id     BIGINT NOT NULL,
  post_id       BIGINT NOT NULL,
  comment_count BIGINT NOT NULL DEFAULT 0,
  version       BIGINT NOT NULL DEFAULT 0,
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
  KEY idx_comment_list (author_id, post_id, created_at, comment_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
