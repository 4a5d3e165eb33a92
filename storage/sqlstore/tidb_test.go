package sqlstore

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// TestPagesOfLongListsOnTiDB: a user with the first page of a long list is read without reading
// the list. EXPLAIN ANALYZE runs a statement and reports how many rows each operator had.
func TestPagesOfLongListsOnTiDB(t *testing.T) {
	testenv.OnlyOn(t, "the others count the rows of a session, see TestLongListsAreNotRead", "tidb")
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsn, StatementTimeout: time.Minute, OnStatement: seen.record})
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}})[0].Err)
	followers(t, s, 1, 3000)
	seen.reset()
	var b storage.Bundle
	users, pages := storage.UserLookups.Ask(&b, 1), storage.PageLookups[storage.Inverse].Ask(&b, storage.PageQuery{Owner: 1, Limit: 20})
	storage.CountLookups.Ask(&b, 1)
	s.Bundle(t.Context(), &b)
	page := pages.Results[0]
	must.That(t, page.Err == nil && len(page.Value) == 20 && users.Results[0].Value.Handle == "a", "%+v, %+v", page, users.Results)
	for _, st := range seen.all() {
		rows, err := s.db.Shard(0).Write.QueryContext(t.Context(), "EXPLAIN ANALYZE "+st.Text, st.Args...)
		must.That(t, err == nil, "%s: %v", st.Lookup, err)
		defer rows.Close()
		for rows.Next() {
			var id, estimated, actual, task, object, execution, info, memory, disk string
			must.OK(t, rows.Scan(&id, &estimated, &actual, &task, &object, &execution, &info, &memory, &disk))
			if n, err := strconv.Atoi(actual); err != nil || n > 100 {
				t.Errorf("%s: %s had %s rows, %v", st.Lookup, strings.TrimLeft(id, "│├└─ "), actual, err)
			}
		}
		must.OK(t, rows.Err())
	}
}

// TestManyFollowTheSame: 16 writers at a time make others follow the same two users. Each writer locks
// the counts of these two together with the follower's, and such changes do not share a transaction. No
// statement loses so many races that the transaction starts over.
func TestManyFollowTheSame(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 20
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsn, MaxConns: 4 * writers, OnStatement: seen.record})
	must.OK(t, err)
	defer s.Close()
	users := make([]storage.User, 2+writers*each)
	for i := range users {
		users[i] = storage.User{ID: storage.UserID(1 + i), Handle: "u" + strconv.Itoa(i)}
	}
	must.All(t, s.CreateUsers(t.Context(), users))
	seen.reset()
	began := time.Now()
	var following sync.WaitGroup
	for i := range writers {
		following.Go(func() {
			for j := range each {
				from := users[2+i*each+j].ID
				both := []storage.EdgeChange{{To: 1, Type: storage.Following, At: 1}, {To: 2, Type: storage.Following, At: 1}}
				for _, r := range s.ChangeEdges(t.Context(), storage.Forward, from, both, storage.ChangeOptions{Inverse: true}) {
					check.That(t, r.Err == nil, "%s: %v", from, r.Err)
				}
			}
		})
	}
	following.Wait()
	t.Logf("%d changes in %v", writers*each, time.Since(began).Round(time.Millisecond))
	n := storage.CountLookups.Read(t.Context(), s, 1)[0]
	check.That(t, n.Err == nil && n.Value.Follower == writers*each, "%+v", n)
	for _, st := range seen.all() {
		must.That(t, st.Err == nil, "%s: %v", st.Lookup, st.Err)
	}
}
