package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// The migration that adds user_counts.friend_count on servers. It is written in Go
// because it goes through the users in stretches: one UPDATE of them all would hold
// up every write until its end. Each step can be done again.
const (
	friendCountVersion = 10

	// MySQL knows no ADD COLUMN IF NOT EXISTS.
	sqlHasFriendCount = `
SELECT COUNT(*)
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = 'user_counts' AND column_name = 'friend_count'`

	sqlAddFriendCount = `
ALTER TABLE user_counts
ADD COLUMN friend_count BIGINT NOT NULL DEFAULT 0`

	// Served by the primary key.
	sqlEndOfStretch = `
SELECT user_id
FROM user_counts
WHERE user_id > ?
ORDER BY user_id LIMIT 1 OFFSET ?`

	// Served by the primary key, idx_following_list and the primary key of follower.
	sqlSetFriendCounts = `
UPDATE user_counts
SET friend_count = (
  SELECT COUNT(*)
  FROM following f
  JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
  WHERE f.from_user_id = user_counts.user_id AND f.type = 1
)
WHERE user_id > ? AND user_id <= ?`
)

// friendStretch is how many users are counted in one statement.
const friendStretch = 2000

func friendCountMigration() *goose.Migration {
	return goose.NewGoMigration(friendCountVersion, &goose.GoFunc{RunDB: addFriendCount}, nil)
}

func addFriendCount(ctx context.Context, db *sql.DB) error {
	var have int
	if err := db.QueryRowContext(ctx, sqlHasFriendCount).Scan(&have); err != nil {
		return fmt.Errorf("look for friend_count: %w", err)
	}
	if have == 0 {
		if _, err := db.ExecContext(ctx, sqlAddFriendCount); err != nil {
			return fmt.Errorf("add friend_count: %w", err)
		}
	}
	const last = 1<<63 - 1
	for after := int64(0); after < last; {
		upTo := int64(last)
		err := db.QueryRowContext(ctx, sqlEndOfStretch, after, friendStretch-1).Scan(&upTo)
		if err != nil && err != sql.ErrNoRows {
			return fmt.Errorf("find users behind %d: %w", after, err)
		}
		if _, err := db.ExecContext(ctx, sqlSetFriendCounts, after, upTo); err != nil {
			return fmt.Errorf("count friends of users behind %d: %w", after, err)
		}
		after = upTo
	}
	return nil
}
