// Package measure_test contains the measurements that the decisions in docs/inside/adr cite. Anyone can
// repeat them, on a private MariaDB that each of them starts:
//
//	make bench PKG=./docs/inside/adr/measure
//
// Besides the time they report rows/op: the number of index entries that the server read for one
// statement. Unlike the time, that number is the same on every machine.
package measure_test

import (
	"context"
	"database/sql"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// begin starts a server with enough memory for everything, and returns one connection to an empty
// database on it.
func begin(b *testing.B) *sql.Conn {
	b.Helper()
	server := testenv.MariaDB(b, "--innodb-buffer-pool-size=768M", "--skip-log-bin")
	server.CreateDatabase(b, "measure")
	conn, err := server.Open(b, "measure").Conn(context.Background())
	must.OK(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func execute(b *testing.B, conn *sql.Conn, statements ...string) {
	b.Helper()
	for _, s := range statements {
		_, err := conn.ExecContext(context.Background(), s)
		must.That(b, err == nil, "%s: %v", s, err)
	}
}

// count runs a statement, and returns the number of rows.
func count(b *testing.B, conn *sql.Conn, text string) int {
	b.Helper()
	rows, err := conn.QueryContext(context.Background(), text)
	must.That(b, err == nil, "%s: %v", text, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	must.OK(b, rows.Err())
	return n
}

// compare measures one statement. It fails if the statement does not find want rows, because a
// statement that answers another question must not win.
func compare(b *testing.B, conn *sql.Conn, text string, want int) {
	b.Helper()
	execute(b, conn, "FLUSH STATUS")
	n := count(b, conn, text)
	must.That(b, n == want, "%d rows, want %d: %s", n, want, text)
	read := entriesRead(b, conn)
	for b.Loop() {
		count(b, conn, text)
	}
	b.ReportMetric(float64(read), "rows/op")
}

// entriesRead sums the server's Handler_read counters since FLUSH STATUS.
func entriesRead(b *testing.B, conn *sql.Conn) (sum int64) {
	b.Helper()
	const text = `
SELECT SUM(variable_value)
FROM information_schema.session_status
WHERE variable_name IN ('HANDLER_READ_FIRST', 'HANDLER_READ_KEY', 'HANDLER_READ_LAST',
  'HANDLER_READ_NEXT', 'HANDLER_READ_PREV', 'HANDLER_READ_RND', 'HANDLER_READ_RND_NEXT')`
	must.OK(b, conn.QueryRowContext(context.Background(), text).Scan(&sum))
	return sum
}
