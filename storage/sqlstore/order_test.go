package sqlstore

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// Each way in which a count may be wrong is found alone, and all of them together in the order of their users: those who own edges
// and those who own none are looked for by different statements.
func TestWrongCountsAscend(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openSmall(t, location, nil)
		for from := storage.UserID(1); from <= 8; from++ {
			must.All(t, s.Apply(t.Context(), storage.Forward, []storage.Edge{{From: from, To: 100, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer))
		}
		wrong := func(what string, want ...sides.WrongCount) {
			t.Helper()
			got, err := s.WrongCounts(t.Context(), storage.Forward, 0, sides.OwnerRange{After: -1, UpTo: 100})
			check.That(t, err == nil && slices.Equal(got, want), "%s: got %+v, %v; want %+v", what, got, err, want)
		}
		wrong("as written")
		type damage struct {
			do, undo string
			want     sides.WrongCount
		}
		var all []sides.WrongCount
		damages := []damage{
			{"INSERT INTO user_counts (user_id, following_count) VALUES (0, 5)", "DELETE FROM user_counts WHERE user_id = 0", sides.WrongCount{User: 0, Have: 5}},
			{"UPDATE user_counts SET following_count = 5 WHERE user_id = 3", "UPDATE user_counts SET following_count = 1 WHERE user_id = 3", sides.WrongCount{User: 3, Have: 5, Are: 1}},
			{"DELETE FROM user_counts WHERE user_id = 6", "INSERT INTO user_counts (user_id, following_count) VALUES (6, 1)", sides.WrongCount{User: 6, Are: 1}},
			{"INSERT INTO user_counts (user_id, following_count) VALUES (9, 5)", "DELETE FROM user_counts WHERE user_id = 9", sides.WrongCount{User: 9, Have: 5}},
		}
		for _, d := range damages {
			s.execute(t, d.do)
			wrong(d.do, d.want)
			s.execute(t, d.undo)
			wrong(d.undo)
		}
		for _, d := range damages {
			s.execute(t, d.do)
			all = append(all, d.want)
		}
		wrong("all at once", all...)
	})
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
