package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// onDatabases runs a test on stores of one shard, with the shard's database.
func onDatabases(t *testing.T, test func(*testing.T, *sqlstore.Store, *sql.DB)) {
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

func repair(t *testing.T, s *sqlstore.Store, r sides.Repair) storage.Changed {
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
