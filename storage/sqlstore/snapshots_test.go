package sqlstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// An answer is of one moment because it is one statement.
func TestSnapshotsAreOneStatementAShard(t *testing.T) {
	dir := t.TempDir()
	seen := &recorder{}
	s, err := Open(t.Context(), Config{
		Location:    "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db"),
		OnStatement: seen.record,
	})
	must.OK(t, err)
	defer s.Close()
	ids := make([]storage.UserID, 50) // SQLite takes 32 in a statement
	users := make([]storage.User, len(ids))
	queries := make([]storage.ListQuery, len(ids))
	var edges []storage.Edge
	for i := range ids {
		ids[i] = storage.UserID(i + 1)
		users[i] = storage.User{ID: ids[i], Handle: fmt.Sprint("user_", i)}
		queries[i] = storage.ListQuery{Owner: ids[i], Longest: 7, EndedSince: 1}
		edges = append(edges, storage.Edge{From: ids[i], To: storage.UserID((i+1)%len(ids) + 1), Type: storage.Following, UpdateTime: 1})
	}
	s.CreateUsers(t.Context(), users)
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} { // every user with an edge has counts
		s.Apply(t.Context(), side, edges, storage.IfNewer)
	}
	seen.reset()
	storage.ProfileLookups.Read(t.Context(), s, ids...)
	storage.SnapshotLookups[storage.Forward].Read(t.Context(), s, queries...)
	storage.SnapshotLookups[storage.Inverse].Read(t.Context(), s, queries...)
	n := map[string]int{}
	for _, st := range seen.all() {
		n[fmt.Sprintf("%s on shard %d", st.Lookup, st.Shard)]++
	}
	for _, lookup := range []string{"profiles", "lists.following", "lists.follower"} {
		for shard := range 2 {
			what := fmt.Sprintf("%s on shard %d", lookup, shard)
			check.That(t, n[what] == 1, "%s: %d statements, want 1", what, n[what])
		}
	}
	check.That(t, len(n) == 6, "statements: %v", n)
}

// A dead shard fails its own keys and no others.
func TestSnapshotsWithADeadShard(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)[0]
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	const database, user = "kith_snapshots", "kith_snapshots"
	server.CreateDatabase(t, database)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE "+database) })
	server.Exec(t, "CREATE USER "+user+" IDENTIFIED BY 'old'")
	t.Cleanup(func() { server.Exec(t, "DROP USER "+user) })
	server.Exec(t, "GRANT ALL ON "+database+".* TO "+user)
	other := fmt.Sprintf("%s:old@tcp(%s)/%s", user, server.Addr(), database)
	s, err := Open(t.Context(), Config{Location: "mysql:" + strings.Join([]string{dsn, other}, ";"), StatementTimeout: time.Minute})
	must.OK(t, err)
	defer s.Close()

	var users []storage.User
	var ids []storage.UserID
	var edges []storage.Edge
	var queries []storage.ListQuery
	for id := storage.UserID(1); id <= 40; id++ {
		users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("user_%d", id)})
		ids = append(ids, id)
		edges = append(edges, storage.Edge{From: id, To: 99, Type: storage.Following, UpdateTime: 1})
		queries = append(queries, storage.ListQuery{Owner: id, Longest: 10})
	}
	must.All(t, s.CreateUsers(t.Context(), users))
	must.All(t, s.Apply(t.Context(), storage.Forward, edges, storage.IfNewer))
	server.Exec(t, "ALTER USER "+user+" IDENTIFIED BY 'new'")
	server.KillConnections(t, user)

	profiles := storage.ProfileLookups.Read(t.Context(), s, ids...)
	lists := storage.SnapshotLookups[storage.Forward].Read(t.Context(), s, queries...)
	dead := 0
	for i, id := range ids {
		if s.shards.Of(id) == 1 {
			dead++
			p := profiles[i]
			check.That(t, errors.Is(p.Err, storage.ErrUnavailable) && !p.Found, "profile %d of the dead shard: %+v", id, p)
			l := lists[i]
			check.That(t, errors.Is(l.Err, storage.ErrUnavailable) && !l.Found && l.Value.Edges == nil, "list %d of the dead shard: %+v", id, l)
			continue
		}
		p := profiles[i]
		check.That(t, p.Err == nil && p.Value.User.Handle == users[i].Handle, "profile %d: %+v", id, p)
		l := lists[i]
		check.That(t, l.Err == nil && len(l.Value.Edges) == 1 && l.Value.Edges[0] == edges[i], "list %d: %+v", id, l)
	}
	must.That(t, dead != 0 && dead != len(ids), "%d of %d users are on one shard", dead, len(ids))
	_, err = storage.UserIDLookups.Get(t.Context(), s, storage.ShardQuery[storage.UserID]{Shard: 1, After: 0, Limit: 10})
	check.Is(t, "users of the dead shard", err, storage.ErrUnavailable)
	ids, err = storage.UserIDLookups.Get(t.Context(), s, storage.ShardQuery[storage.UserID]{Shard: 0, After: 0, Limit: 10})
	check.That(t, err == nil && len(ids) == 10, "users of the other: %v, %v", ids, err)
}

// A list that is too long is recognised by its count alone, and none of its rows are read.
func TestLongListsAreNotRead(t *testing.T) {
	testenv.NotOn(t, "it does not count the rows that a session reads", "tidb")
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsns[0], StatementTimeout: time.Minute, MaxConns: 1})
	must.OK(t, err)
	defer s.Close()
	const n = 5000
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var edges []storage.Edge
		for i := range storage.UserID(n) {
			p := side.Pair(1, 10+i)
			edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: 1})
		}
		must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
		for _, long := range []bool{true, false} {
			q := storage.ListQuery{Owner: 1, Longest: n}
			if long {
				q.Longest--
			}
			before := rowsRead(t, s)
			r := storage.SnapshotLookups[side].Read(t.Context(), s, q)[0]
			must.That(t, r.Err == nil && r.Value.Long == long, "%+v", r)
			read := rowsRead(t, s) - before
			check.That(t, (read < n/10) == long, "%s, long: %v: %d rows were read", side, long, read)
		}
	}
}

// A deletion lists what is left of a user's rows in steps, and reads none of those that it has ended: they may be millions.
func TestWhatHasEndedIsNotReadAgain(t *testing.T) {
	testenv.NotOn(t, "it does not count the rows that a session reads", "tidb")
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsns[0], StatementTimeout: time.Minute, MaxConns: 1})
	must.OK(t, err)
	defer s.Close()
	const n, left, user = 5000, 10, 1
	for _, side := range storage.AllSides {
		var edges []storage.Edge
		for i := range storage.UserID(n) {
			pair := side.Pair(user, 10+i)
			pair.Item = int64(side/storage.Favorites) * 7
			edges = append(edges, pair.Edge(storage.EdgeType(i/(n-left)), storage.Micros(1+i)))
		}
		must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
		for skip := range 2 {
			before := rowsRead(t, s)
			r := storage.RowLookups.Read(t.Context(), s, storage.RowsQuery{Side: side, Owner: user, Limit: left, Any: true, Skip: skip})[0]
			want := left - skip
			if side.Truth() == storage.Relations {
				want = left // which have all ended
			}
			check.That(t, r.Err == nil && len(r.Value) == want, "%s: %d rows, %v", side, len(r.Value), r.Err)
			check.Most(t, "rows read of "+side.String(), rowsRead(t, s)-before, 2*left)
		}
	}
}

// rowsRead returns how many rows the store's only connection for look-ups has read by an index.
func rowsRead(t *testing.T, s *Store) (n int) {
	t.Helper()
	rows, err := s.db.Shard(0).Read.QueryContext(t.Context(), `SHOW SESSION STATUS LIKE 'Handler_read%'`)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var count int
		must.OK(t, rows.Scan(&name, &count))
		if name == "Handler_read_next" || name == "Handler_read_prev" || name == "Handler_read_key" {
			n += count
		}
	}
	must.OK(t, rows.Err())
	return n
}

// A count that is wrong, even one below zero, does not keep a list from being read.
func TestListsOfWrongCounts(t *testing.T) {
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "0.db")})
	must.OK(t, err)
	defer s.Close()
	s.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	edge := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}
	s.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer)
	for _, count := range []int{-1, -2, -1000, 7, 1 << 40} {
		_, err := s.db.All()[0].Write.ExecContext(t.Context(), "UPDATE user_counts SET following_count = ? WHERE user_id = 1", count)
		must.OK(t, err)
		r := storage.SnapshotLookups[storage.Forward].Read(t.Context(), s, storage.ListQuery{Owner: 1, Longest: 1 << 50, EndedSince: 1})[0]
		check.That(t, r.Err == nil && r.Found && len(r.Value.Edges) == 1 && r.Value.Edges[0] == edge, "with a count of %d: %+v", count, r)
	}
}
