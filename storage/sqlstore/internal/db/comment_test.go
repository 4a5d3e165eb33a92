package db

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// naming opens a store with one connection for look-ups. Its statements run for the requests that id names.
func naming(t testing.TB, location string, id func(context.Context) string) *DB {
	t.Helper()
	d, err := Open(context.Background(), Config{Location: location, StatementTimeout: 10 * time.Second, MaxConns: 1, RequestID: id})
	must.OK(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// sqlOwn shows the text that the server has received. It has an argument so that it may be prepared.
const sqlOwn = `SELECT info FROM information_schema.processlist WHERE id = CONNECTION_ID() AND 1 = ?`

// TestStatementsNameTheirRequest: the server sees for which request a look-up or a write runs. An id that could end the
// comment, or make it executable, is left out.
func TestStatementsNameTheirRequest(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", 64)
	id := ""
	d := naming(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0], func(context.Context) string { return id })
	_, err := d.Shard(0).Write.Exec("CREATE TABLE noticed (info TEXT)")
	must.OK(t, err)
	for _, c := range []struct{ id, begins string }{
		{"r-1.A_b", "/* request=r-1.A_b */ "},
		{longest, "/* request=" + longest + " */ "},
		{longest + "a", ""},
		{"", ""},
		{"*/ DROP TABLE noticed; /*", ""},
		{"a*/", ""},
		{"a/*", ""},
		{"!50000 DROP TABLE noticed", ""},
		{"'", ""},
		{`a"b`, ""},
		{"a`b", ""},
		{"a\n", ""},
		{"a\x00", ""},
		{"a\\", ""},
		{"é", ""},
	} {
		id = c.id
		var read, written string
		must.OK(t, d.Query(t.Context(), "own", 0, 1, sqlOwn, []any{1}, func(rows *sql.Rows) error { return rows.Scan(&read) }))
		check.That(t, strings.HasPrefix(read, c.begins+"SELECT info"), "%q: read by %q", id, read)
		err := d.Transact(t.Context(), "own", 0, func(w *Tx) error {
			if _, err := w.Exec(1, "INSERT INTO noticed "+sqlOwn, 1); err != nil {
				return err
			}
			return w.Read(1, "SELECT info FROM noticed ORDER BY info = ? LIMIT 1", []any{""}, func(rows *sql.Rows) error { return rows.Scan(&written) })
		})
		check.That(t, err == nil && strings.HasPrefix(written, c.begins+"INSERT INTO noticed"), "%q: written by %q, %v", id, written, err)
		_, err = d.Shard(0).Write.Exec("DELETE FROM noticed")
		must.OK(t, err)
	}
	id = "r-2"
	lite := naming(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"), func(context.Context) string { return id })
	found := 0
	err = lite.Query(t.Context(), "one", 0, 1, "SELECT ?", []any{7}, func(rows *sql.Rows) error { return rows.Scan(&found) })
	check.That(t, err == nil && found == 7, "on SQLite: %d, %v", found, err)
}

// TestNamedStatementsAreNotPrepared: otherwise each request would prepare every statement again, and replace the
// statements that are repeated.
func TestNamedStatementsAreNotPrepared(t *testing.T) {
	testenv.NotOn(t, "it does not count what a session prepares", "tidb")
	t.Parallel()
	n, named := 0, false
	d := naming(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0], func(context.Context) string {
		if n++; named {
			return fmt.Sprint("r", n%3) // also the same id again
		}
		return ""
	})
	prepares := func() (count int) {
		name := ""
		must.OK(t, d.Shard(0).Read.QueryRow("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").Scan(&name, &count))
		return count
	}
	ask := func() {
		for range 20 {
			must.OK(t, d.Query(t.Context(), "one", 0, 1, "SELECT user_id FROM users WHERE user_id = ?", []any{1}, func(*sql.Rows) error { return nil }))
		}
	}
	named = true
	if ask(); prepares() != 0 {
		t.Errorf("%d were prepared", prepares())
	}
	named = false
	if ask(); prepares() != 1 {
		t.Errorf("without ids %d were prepared", prepares())
	}
	named = true
	if ask(); prepares() != 1 {
		t.Errorf("%d more were prepared", prepares()-1)
	}
}

// TestNoCommentsCostNothing: while comments are off, and for statements that run for no request.
func TestNoCommentsCostNothing(t *testing.T) {
	for name, d := range map[string]*DB{"off": {}, "no request": {cfg: Config{RequestID: func(context.Context) string { return "" }}}} {
		text := "SELECT 1"
		n := testing.AllocsPerRun(100, func() { text = d.commented(context.Background(), text) })
		check.That(t, n == 0 && text == "SELECT 1", "%s: %v allocations, %s", name, n, text)
	}
}

// BenchmarkSQLComments measures a look-up of a user by key: prepared, and with a comment.
func BenchmarkSQLComments(b *testing.B) {
	location := "mysql:" + testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)[0]
	var n atomic.Int64
	for name, id := range map[string]func(context.Context) string{"off": nil, "on": func(context.Context) string { return fmt.Sprint("request-", n.Add(1)) }} {
		b.Run(name, func(b *testing.B) {
			d := naming(b, location, id)
			_, err := d.Shard(0).Write.Exec("INSERT IGNORE INTO users (user_id, handle, name, bio, avatar_url, created_at, updated_at) VALUES (1, 'a', 'A', 'b', '', 1, 1)")
			must.OK(b, err)
			b.ReportAllocs()
			for b.Loop() {
				must.OK(b, d.Query(b.Context(), "users", 0, 1, "SELECT user_id, handle, name, bio FROM users WHERE user_id IN (?)", []any{1}, func(*sql.Rows) error { return nil }))
			}
		})
	}
}
