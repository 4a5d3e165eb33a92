package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sides"
)

// A repairable store is a store that reconcile works on.
type repairable interface {
	storage.Store
	sides.Comparer
	sides.Repairer
}

// eachRepairable runs a test on every engine.
func eachRepairable(t *testing.T, test func(*testing.T, repairable)) {
	t.Run("memory", func(t *testing.T) { test(t, oracle.New()) })
	t.Run("SQLite", func(t *testing.T) { test(t, open(t, sqlite(t, 2))) })
	t.Run("MariaDB", func(t *testing.T) { test(t, open(t, mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)))) })
}

// onDatabases runs a test on stores of one shard, with the shard's database.
func onDatabases(t *testing.T, test func(*testing.T, repairable, *sql.DB)) {
	run := func(t *testing.T, location string) {
		test(t, open(t, location), connect(t, location[strings.Index(location, ":")+1:]))
	}
	t.Run("SQLite", func(t *testing.T) { run(t, sqlite(t, 1)) })
	t.Run("MariaDB", func(t *testing.T) { run(t, mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1))) })
}

func write(t *testing.T, s storage.Store, side storage.Side, edges ...storage.Edge) {
	t.Helper()
	must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
}

func edge(from, to storage.UserID, kind storage.EdgeType, at storage.Micros) storage.Edge {
	return storage.Edge{From: from, To: to, Type: kind, UpdateTime: at}
}

func repair(t *testing.T, s repairable, r sides.Repair) storage.Changed {
	t.Helper()
	result := s.RepairInverse(t.Context(), []sides.Repair{r})[0]
	must.That(t, result.Err == nil && result.Found, "repair %+v: %+v", r, result)
	return result.Value
}

func wantRow(t *testing.T, s storage.Store, side storage.Side, want storage.Edge) {
	t.Helper()
	r := storage.EdgeLookups[side].Read(t.Context(), s, want.Pair())[0]
	check.That(t, r.Err == nil && r.Value == want, "%s: got %+v, want %+v", side, r, want)
}

func wantCounts(t *testing.T, s storage.Store, id storage.UserID, following, follower, friend int64) {
	t.Helper()
	r := storage.CountLookups.Read(t.Context(), s, id)[0]
	if c := r.Value; r.Err != nil || c.Following != following || c.Follower != follower || c.Friend != friend {
		t.Errorf("counts of user %d: %+v, want %d, %d, %d", id, r, following, follower, friend)
	}
}

// A block whose inverse row was lost takes effect when the row is repaired: it ends the follow and the
// request in the other direction, in the same transaction.
func TestRepairedBlockEndsTheReverseFollow(t *testing.T) {
	eachRepairable(t, func(t *testing.T, s repairable) {
		write(t, s, storage.Forward, edge(2, 1, storage.Following, 50))
		write(t, s, storage.Requests, edge(2, 1, storage.Pending, 60))
		write(t, s, storage.Inverse, edge(1, 2, storage.Following, 10))
		wantCounts(t, s, 2, 1, 1, 1)
		done := repair(t, s, sides.Repair{
			Pair:     storage.Pair{From: 1, To: 2},
			Observed: edge(1, 2, storage.Following, 10), Want: edge(1, 2, storage.Blocking, 20),
		})
		check.That(t, done.Changed && len(done.Also) == 2, "repaired: %+v", done)
		wantRow(t, s, storage.Inverse, edge(1, 2, storage.Blocking, 20))
		wantRow(t, s, storage.Forward, edge(2, 1, storage.None, 51))
		wantRow(t, s, storage.Requests, edge(2, 1, storage.Cancelled, 61))
		wantCounts(t, s, 2, 0, 0, 0)
	})
}

// Rows of requests are repaired like those of follows, with what follows from them.
func TestRepairedAcceptanceMakesTheFollow(t *testing.T) {
	eachRepairable(t, func(t *testing.T, s repairable) {
		write(t, s, storage.Inverse, edge(1, 2, storage.Following, 10))
		r := sides.Repair{
			Side: storage.Inbox, Pair: storage.Pair{From: 1, To: 2}, Want: edge(1, 2, storage.Accepted, 30),
		}
		done := repair(t, s, r)
		want := storage.Written{Row: storage.Row{Side: storage.Forward, Edge: edge(2, 1, storage.Following, 30)}}
		check.That(t, done.Changed && len(done.Also) == 1 && done.Also[0] == want, "repaired: %+v", done)
		wantRow(t, s, storage.Inbox, edge(1, 2, storage.Accepted, 30))
		wantCounts(t, s, 2, 1, 1, 1)
		again := repair(t, s, r)
		check.That(t, !again.Changed, "a row that is not as it was observed: %+v", again)
		wantCounts(t, s, 2, 1, 1, 1)
	})
}

// When an inverse row is lost or restored, the number of friends changes with it.
func TestRepairKeepsTheFriends(t *testing.T) {
	eachRepairable(t, func(t *testing.T, s repairable) {
		write(t, s, storage.Forward, edge(2, 1, storage.Following, 5))
		write(t, s, storage.Inverse, edge(1, 2, storage.Following, 10))
		wantCounts(t, s, 2, 1, 1, 1)
		nothing := edge(1, 2, storage.None, 0)
		repair(t, s, sides.Repair{Pair: nothing.Pair(), Observed: edge(1, 2, storage.Following, 10), Want: nothing})
		wantCounts(t, s, 2, 1, 0, 0)
		repair(t, s, sides.Repair{Pair: nothing.Pair(), Observed: nothing, Want: edge(1, 2, storage.Following, 10)})
		wantCounts(t, s, 2, 1, 1, 1)
	})
}
