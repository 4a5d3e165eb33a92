package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlFeedSeen = `
SELECT seen_at
FROM feed_seen
WHERE user_id = ?`

	// Served by the primary key.
	sqlSeeFeed = `
UPDATE feed_seen
SET seen_at = ?
WHERE user_id = ? AND seen_at < ?`

	// Served by the primary key.
	sqlRemoveFeedSeen = `
DELETE FROM feed_seen
WHERE user_id = ?`
)

var sqlSeeFeedFirst = db.Both(`
INSERT OR IGNORE INTO feed_seen (user_id, seen_at)
VALUES (?, ?)`)

// readFeedSeen answers [storage.FeedSeenLookups].
func (s *Store) readFeedSeen(ctx context.Context, user storage.UserID) (upTo storage.Micros, err error) {
	err = s.db.Query(ctx, "feed.seen", s.shards.Of(user), 1, sqlFeedSeen, []any{int64(user)}, func(rows *sql.Rows) error { return rows.Scan(&upTo) })
	return upTo, err
}

// SeeFeed implements [storage.ActivityStore].
func (s *Store) SeeFeed(ctx context.Context, user storage.UserID, upTo storage.Micros) (changed bool, err error) {
	err = s.transactFor(ctx, "feed.see", user, func(w *writer) error {
		if err := w.lockUser(user); err != nil {
			return err
		}
		w.touchUser(user)
		n, err := w.Exec(1, s.sql.Text(sqlSeeFeedFirst), int64(user), int64(upTo))
		if err == nil && n == 0 {
			n, err = w.Exec(1, sqlSeeFeed, int64(upTo), int64(user), int64(upTo))
		}
		changed = n > 0 && upTo > 0
		return err
	})
	return changed && err == nil, err
}
