-- +goose Up
-- Each statement commits by itself and may run again. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'favorite_count');
SET @change = IF(@missing, 'ALTER TABLE user_counts ADD COLUMN favorite_count BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_favorite_count FROM @change;
EXECUTE add_favorite_count;
DEALLOCATE PREPARE add_favorite_count;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'total_favorited');
SET @change = IF(@missing, 'ALTER TABLE user_counts ADD COLUMN total_favorited BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_total_favorited FROM @change;
EXECUTE add_total_favorited;
DEALLOCATE PREPARE add_total_favorited;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'post_counts' AND column_name = 'favorite_count');
SET @change = IF(@missing, 'ALTER TABLE post_counts ADD COLUMN favorite_count BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE add_favorites_of_post FROM @change;
EXECUTE add_favorites_of_post;
DEALLOCATE PREPARE add_favorites_of_post;

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
  KEY idx_favorite_inbox_list (to_user_id, post_id, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
