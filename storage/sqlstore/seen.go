package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlSeen = `
SELECT seen_at
FROM seen
WHERE user_id = ? AND kind = ?`

	// Served by the primary key.
	sqlSee = `
UPDATE seen
SET seen_at = ?
WHERE user_id = ? AND kind = ? AND seen_at < ?`

	// Served by the primary key.
	sqlRemoveSeen = `
DELETE FROM seen
WHERE user_id = ?`
)

var sqlSeeFirst = db.Both(`
INSERT OR IGNORE INTO seen (user_id, kind, seen_at)
VALUES (?, ?, ?)`)

// readSeen answers [storage.SeenLookups].
func (s *Store) readSeen(ctx context.Context, what storage.Seen) (upTo storage.Micros, err error) {
	err = s.db.Query(ctx, "seen", s.shards.Of(what.User), 1, sqlSeen, []any{int64(what.User), what.Activity}, func(rows *sql.Rows) error { return rows.Scan(&upTo) })
	return upTo, err
}

// See implements [storage.Store].
func (s *Store) See(ctx context.Context, what storage.Seen, upTo storage.Micros) (changed bool, err error) {
	return changes(ctx, s.changeOwned, "see", what.User, func(w *writer) (bool, error) {
		n, err := w.Exec(1, s.sql.Text(sqlSeeFirst), int64(what.User), what.Activity, int64(upTo))
		if err == nil && n == 0 {
			n, err = w.Exec(1, sqlSee, int64(upTo), int64(what.User), what.Activity, int64(upTo))
		}
		return n > 0 && upTo > 0, err
	})
}
