package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Users behind a rank are those of the same day, then those of the same class, then all others: three ranges of one
// index, in its order.
const (
	// Served by idx_popular.
	sqlRankedOfDay = `
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class = ? AND active_day = ? AND user_id < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?`

	// Served by idx_popular.
	sqlRankedOfClass = `
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class = ? AND active_day < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?`

	// Served by idx_popular.
	sqlRanked = `
SELECT follower_class, active_day, user_id
FROM user_counts /*! FORCE INDEX (idx_popular) */
WHERE follower_class < ?
ORDER BY follower_class DESC, active_day DESC, user_id DESC LIMIT ?`
)

// aboveAllClasses: counts have 19 digits at most.
const aboveAllClasses = 2000

// Ranked implements [storage.Ranker].
func (s *Store) Ranked(ctx context.Context, shard int, after storage.Rank, limit int) ([]storage.Rank, error) {
	type rangeOf struct {
		text string
		args []any
	}
	class, day, user := int64(after.Class), int64(after.ActiveDay), int64(after.User)
	ranges := []rangeOf{{sqlRankedOfDay, []any{class, day, user}}, {sqlRankedOfClass, []any{class, day}}, {sqlRanked, []any{class}}}
	if after == (storage.Rank{}) {
		ranges = []rangeOf{{sqlRanked, []any{aboveAllClasses}}}
	}
	var ranks []storage.Rank
	row := db.NewNumbers(3, 0)
	for _, q := range ranges {
		left := limit - len(ranks)
		if left <= 0 {
			break
		}
		err := s.db.Query(ctx, "ranked", shard, left, q.text, append(q.args, left), func(rows *sql.Rows) error {
			row.Scan(rows)
			ranks = append(ranks, storage.Rank{Class: int(row.At(0)), ActiveDay: storage.Day(row.At(1)), User: storage.UserID(row.At(2))})
			return row.Err
		})
		if err != nil {
			return nil, err
		}
	}
	return ranks, nil
}
