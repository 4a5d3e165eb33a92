package sqlstore

import (
	"cmp"
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
)

// Users come by the class of their followers, their last active day and their ids, each descending, whatever the size of the
// pages, and each once.
func TestUsersByRank(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openSmall(t, location, nil)
		var users []storage.User
		var edges []storage.Edge
		for i := range storage.UserID(60) {
			users = append(users, storage.User{ID: 1000 + i, Handle: "user_" + i.String(), Name: "A", CreatedAt: 1, UpdatedAt: 1})
			for k := range i % 4 {
				edges = append(edges, storage.Edge{From: 1 + k, To: 1000 + i, Type: storage.Following, UpdateTime: 1})
			}
		}
		must.All(t, s.CreateUsers(t.Context(), users))
		must.All(t, s.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
		s.execute(t, "UPDATE user_counts SET active_day = user_id % 3")
		var want []finding.Rank
		for i := range storage.UserID(60) {
			want = append(want, finding.Rank{Class: 100 + int(i%4), ActiveDay: storage.Day((1000 + i) % 3), User: 1000 + i})
		}
		slices.SortFunc(want, func(a, b finding.Rank) int {
			return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(b.ActiveDay, a.ActiveDay), cmp.Compare(b.User, a.User))
		})
		for _, limit := range []int{1, 7, 60, 1000} {
			var got []finding.Rank
			var last finding.Rank
			for {
				page, err := s.Ranked(t.Context(), 0, last, limit)
				must.That(t, err == nil && len(page) <= limit, "%d ranks, %v", len(page), err)
				if got = append(got, page...); len(page) < limit {
					break
				}
				last = page[limit-1]
			}
			must.That(t, slices.Equal(got, want), "limit %d:\ngot  %v\nwant %v", limit, got, want)
		}
	})
}
