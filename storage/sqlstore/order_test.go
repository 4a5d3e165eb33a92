package sqlstore

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// Wrong counts are in the order of their users, with owners of edges and other users in one order.
func TestWrongCountsAscend(t *testing.T) {
	s := openSmall(t, twoFiles(t), nil)
	var edges []storage.Edge
	for from := storage.UserID(1); from <= 8; from++ {
		edges = append(edges, storage.Edge{From: from, To: 100, Type: storage.Following, UpdateTime: 1})
	}
	must.All(t, s.Apply(t.Context(), storage.Forward, edges, storage.IfNewer))
	found := 0
	for shard := range s.db.All() {
		write := s.db.Shard(shard).Write
		_, err := write.ExecContext(t.Context(), "UPDATE user_counts SET following_count = 5")
		must.OK(t, err)
		_, err = write.ExecContext(t.Context(), "INSERT INTO user_counts (user_id, following_count) VALUES (0, 5), (9, 5)")
		must.OK(t, err)
		wrong, err := s.WrongCounts(t.Context(), storage.Forward, shard, sides.OwnerRange{After: -1, UpTo: 100})
		ascending := slices.IsSortedFunc(wrong, func(a, b sides.WrongCount) int { return int(a.User - b.User) })
		check.That(t, err == nil && ascending, "shard %d: %+v, %v", shard, wrong, err)
		found += len(wrong)
		for _, w := range wrong {
			isOwner := w.User != 0 && w.User != 9
			check.That(t, w.Have == 5 && isOwner == (w.Are == 1), "shard %d: %+v", shard, w)
		}
	}
	check.Equal(t, "wrong counts were found", found, 8+2*2)
}

// Pages are newest first, whatever order their rows arrive in.
func TestPagesAreNewestFirst(t *testing.T) {
	newest := []storage.Edge{{From: 1, To: 2, UpdateTime: 3}, {From: 1, To: 4, UpdateTime: 2}, {From: 1, To: 3, UpdateTime: 2}, {From: 1, To: 5, UpdateTime: 1}}
	for _, backward := range []bool{false, true} {
		for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
			var page []storage.Edge
			for _, i := range order {
				page = append(page, newest[i])
			}
			sortNewestFirst(storage.Forward, page, backward)
			check.That(t, slices.Equal(page, newest), "rows in order %v, backward %t: %+v", order, backward, page)
		}
	}
}
