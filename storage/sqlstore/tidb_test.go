package sqlstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
)

// TestPagesOfLongListsOnTiDB: a user with the first page of a long list is answered without reading
// the list. EXPLAIN ANALYZE runs a statement and tells how many rows each operator had.
func TestPagesOfLongListsOnTiDB(t *testing.T) {
	testenv.OnlyOn(t, "the others count the rows of a session, see TestLongListsAreNotRead", "tidb")
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsn, StatementTimeout: time.Minute, OnStatement: seen.record})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := s.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	followers(t, s, 1, 3000)
	seen.reset()
	b := storage.Bundle{
		Users:  &storage.Lookup[storage.UserID, storage.User]{Keys: []storage.UserID{1}},
		Counts: &storage.Lookup[storage.UserID, storage.Counts]{Keys: []storage.UserID{1}},
	}
	b.Pages[storage.Inverse] = &storage.Lookup[storage.PageQuery, []storage.Edge]{Keys: []storage.PageQuery{{Owner: 1, Limit: 20}}}
	s.Bundle(t.Context(), &b)
	if page := b.Pages[storage.Inverse].Results[0]; page.Err != nil || len(page.Value) != 20 || b.Users.Results[0].Value.Handle != "a" {
		t.Fatalf("%+v, %+v", page, b.Users.Results)
	}
	for _, st := range seen.all() {
		rows, err := s.db.Shard(0).Write.QueryContext(t.Context(), "EXPLAIN ANALYZE "+st.Text, st.Args...)
		if err != nil {
			t.Fatalf("%s: %v", st.Lookup, err)
		}
		defer rows.Close()
		for rows.Next() {
			var id, estimated, actual, task, object, execution, info, memory, disk string
			if err := rows.Scan(&id, &estimated, &actual, &task, &object, &execution, &info, &memory, &disk); err != nil {
				t.Fatal(err)
			}
			if n, err := strconv.Atoi(actual); err != nil || n > 100 {
				t.Errorf("%s: %s had %s rows, %v", st.Lookup, strings.TrimLeft(id, "│├└─ "), actual, err)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
