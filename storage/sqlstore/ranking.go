package sqlstore

import (
	"context"

	"kith/storage/finding"
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

// Ranked implements localcache.Ranker.
func (s *Store) Ranked(ctx context.Context, shard int, after finding.Rank, limit int) ([]finding.Rank, error) {
	type rangeOf struct {
		text string
		args []any
	}
	class, day, user := int64(after.Class), int64(after.ActiveDay), int64(after.User)
	ranges := []rangeOf{{sqlRankedOfDay, []any{class, day, user}}, {sqlRankedOfClass, []any{class, day}}, {sqlRanked, []any{class}}}
	if after == (finding.Rank{}) {
		ranges = []rangeOf{{sqlRanked, []any{aboveAllClasses}}}
	}
	var ranks []finding.Rank
	for _, q := range ranges {
		left := limit - len(ranks)
		if left <= 0 {
			break
		}
		err := s.db.Query(ctx, "ranked", shard, left, q.text, append(q.args, left), db.AppendTo(&ranks, func(r *finding.Rank) []any {
			return []any{&r.Class, &r.ActiveDay, &r.User}
		}))
		if err != nil {
			return nil, err
		}
	}
	return ranks, nil
}
