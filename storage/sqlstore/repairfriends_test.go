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

// Counts of friends that were changed without the store are found, and no other counts, and are
// corrected.
func TestWrongFriendsAreFoundAndRecounted(t *testing.T) { onDatabases(t, checkWrongFriends) }

func checkWrongFriends(t *testing.T, s *sqlstore.Store, db *sql.DB) {
	for id := storage.UserID(1); id <= 5; id++ {
		for peer := storage.UserID(11); peer < 11+id; peer++ {
			write(t, s, storage.Forward, edge(id, peer, storage.Following, 1), edge(peer, id, storage.Following, 2))
			write(t, s, storage.Inverse, edge(id, peer, storage.Following, 1), edge(peer, id, storage.Following, 2))
		}
		write(t, s, storage.Forward, edge(id, 99, storage.Following, 3))
		write(t, s, storage.Inverse, edge(98, id, storage.Following, 3), edge(97, id, storage.Blocking, 3))
	}
	write(t, s, storage.Inverse, edge(1, 99, storage.Following, 3))
	write(t, s, storage.Forward, edge(2, 96, storage.Following, 3), edge(3, 96, storage.Following, 3)) // longer than the other list
	everybody := sides.OwnerRange{UpTo: math.MaxInt64}
	check := func(when string, owners sides.OwnerRange, want ...sides.WrongCount) {
		t.Helper()
		got, err := s.WrongFriends(context.Background(), 0, owners)
		check.That(t, err == nil && slices.Equal(got, want), "%s: got %+v, %v, want %+v", when, got, err, want)
	}
	check("as written", everybody)
	_, err := db.ExecContext(t.Context(), "UPDATE user_counts SET friend_count = friend_count + 1 WHERE user_id IN (2, 4, 11, 99)")
	must.OK(t, err)
	check("all", everybody, sides.WrongCount{User: 2, Have: 3, Are: 2}, sides.WrongCount{User: 4, Have: 5, Are: 4},
		sides.WrongCount{User: 11, Have: 6, Are: 5}, sides.WrongCount{User: 99, Have: 1, Are: 0})
	check("a range", sides.OwnerRange{After: 2, UpTo: 4}, sides.WrongCount{User: 4, Have: 5, Are: 4})
	for _, r := range s.RecountFriends(t.Context(), []storage.UserID{99, 1, 2, 4}) {
		must.That(t, r.Err == nil && r.Value, "%v", r)
	}
	check("recounted", everybody, sides.WrongCount{User: 11, Have: 6, Are: 5})
	wantCounts(t, s, 4, 5, 5, 4)
}
