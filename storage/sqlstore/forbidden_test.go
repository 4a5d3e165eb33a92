package sqlstore_test

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// Follows against a block that was written without the store are found, and no other follows.
// They end when the block is repaired, although the block itself stays as it is.
func TestForbiddenFollowsAreFoundAndEnded(t *testing.T) { onDatabases(t, checkForbidden) }

func checkForbidden(t *testing.T, s *sqlstore.Store, db *sql.DB) {
	blocks := []storage.Edge{edge(12, 2, storage.Blocking, 20), edge(11, 2, storage.Blocking, 20), edge(11, 4, storage.Blocking, 20), edge(13, 4, storage.Blocking, 20)}
	write(t, s, storage.Inverse, blocks...)
	write(t, s, storage.Forward,
		edge(2, 13, storage.Following, 5), edge(2, 11, storage.None, 5), edge(2, 12, storage.None, 5), // ended
		edge(3, 11, storage.Following, 5), edge(4, 11, storage.None, 5), edge(4, 13, storage.Blocking, 5), edge(4, 12, storage.Following, 5))
	wantForbidden := func(when string, owners sides.OwnerRange, want ...storage.Pair) {
		t.Helper()
		got, err := s.ForbiddenFollows(context.Background(), 0, owners)
		check.That(t, err == nil && slices.Equal(got, want), "%s: got %v, %v, want %v", when, got, err, want)
	}
	everybody := sides.OwnerRange{UpTo: math.MaxInt64}
	wantForbidden("as written", everybody)
	for _, text := range []string{
		"UPDATE following SET type = 1, update_time = 30 WHERE from_user_id IN (2, 4) AND to_user_id IN (11, 12)",
		"UPDATE user_counts SET following_count = 3 WHERE user_id = 2",
		"UPDATE user_counts SET following_count = 2 WHERE user_id = 4",
	} {
		_, err := db.ExecContext(t.Context(), text)
		must.OK(t, err)
	}
	wantForbidden("all", everybody, storage.Pair{From: 2, To: 11}, storage.Pair{From: 2, To: 12}, storage.Pair{From: 4, To: 11})
	wantForbidden("a range", sides.OwnerRange{After: 2, UpTo: 4}, storage.Pair{From: 4, To: 11})

	block := blocks[1]
	old := edge(11, 2, storage.Blocking, 19)
	done := repair(t, s, sides.Repair{Pair: old.Pair(), Observed: old, Want: old})
	check.That(t, !done.Changed && len(done.Also) == 0, "a block that is not as it was observed: %+v", done)
	want := storage.Written{Row: storage.Row{Side: storage.Forward, Edge: edge(2, 11, storage.None, 31)}}
	done = repair(t, s, sides.Repair{Pair: block.Pair(), Observed: block, Want: block})
	check.That(t, done.Changed && slices.Equal(done.Also, []storage.Written{want}), "repaired: %+v", done)
	wantRow(t, s, storage.Inverse, block)
	wantRow(t, s, storage.Forward, want.Edge)
	wantCounts(t, s, 2, 2, 0, 0)
	wantForbidden("after the repair", everybody, storage.Pair{From: 2, To: 12}, storage.Pair{From: 4, To: 11})
}
