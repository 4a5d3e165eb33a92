package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/sides"
)

// Mistakes about relations of declared kinds.
var relationMistakes = []mistake{
	{"kinds are bounded together", func(s *oracle.Store, w *double.Store) {
		made := map[storage.UserID]int64{}
		items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
			if o.MaxItems > 0 {
				o.MaxItems -= made[user]
				made[user]++
			}
			return s.ChangeEdges(ctx, side, user, changes, o)
		})(s, w)
	}, "relations/KindsAreCountedAndBounded", promiseOnly},
	{"rows that have ended are passed over", answers(func(_ *oracle.Store, _ storage.Side, _ storage.RowsQuery, r *storage.Result[[]storage.Edge]) {
		r.Value = slices.DeleteFunc(r.Value, func(e storage.Edge) bool { return e.Type == storage.None })
	}, storage.RowLookups), "relations/AllRowsAreReadWithThoseThatHaveEnded", promiseOnly},
	{"relations lead to users only", answers(func(_ *oracle.Store, _ storage.Side, k storage.OwnerKind, r *storage.Result[storage.KindCount]) {
		if k.Owner == storage.Foreign(7) {
			r.Value = storage.KindCount{}
		}
	}, storage.KindLookups), "relations/TheyLeadAnywhere", promiseOnly},
	{"pages are of all kinds", answers(func(s *oracle.Store, side storage.Side, q storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		if side == storage.Relations && q.Item == 101 {
			q.Item = 102
			*r = storage.PageLookups[side].Read(context.Background(), s, q)[0]
		}
	}, storage.PageLookups...), "relations/PagesAreOfOneKind", promiseOnly},
	{"details are restored again", func(s *oracle.Store, w *double.Store) {
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			results := s.Restore(ctx, r)
			for i := range results {
				results[i].Value = results[i].Found && (len(r.Details) > 0 || results[i].Value)
			}
			return results
		}
	}, "relations/DetailsAreRestoredOnce", promiseOnly},
	{"kinds are counted without a lock", func(s *oracle.Store, w *double.Store) {
		// It finds counts wrong when two writers have met.
		var mu sync.Mutex
		var busy int
		extra := map[storage.UserID]int64{}
		items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
			mu.Lock()
			if busy++; busy > 1 && side == storage.Relations {
				extra[user]++
			}
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				busy--
			}()
			return s.ChangeEdges(ctx, side, user, changes, o)
		})(s, w)
		w.Instead.WrongItemCounts = func(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
			counts, err := s.WrongItemCounts(ctx, side, shard, owners)
			mu.Lock()
			defer mu.Unlock()
			for user, n := range extra {
				if side == storage.Relations {
					counts = append(counts, sides.WrongCount{User: user, Have: n})
				}
			}
			return counts, err
		}
	}, "relations/CountsAreExactWhereManyWrite", lostRace},
}
