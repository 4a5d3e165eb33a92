-- +goose Up
ALTER TABLE user_counts ADD COLUMN friend_count INTEGER NOT NULL DEFAULT 0;

UPDATE user_counts
SET friend_count = (
  SELECT COUNT(*)
  FROM following f
  JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
  WHERE f.from_user_id = user_counts.user_id AND f.type = 1
)
WHERE following_count > 0;
