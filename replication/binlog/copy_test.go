package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A page of the copy is read where the one before has ended, also among the rows of one user.
func TestACopyReadsEachRowOnce(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: "mysql:" + dsn})
	must.OK(t, err)
	must.OK(t, store.Close())
	db, err := sql.Open("mysql", dsn)
	must.OK(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	must.OK(t, err)
	defer conn.Close()
	var database string
	must.OK(t, conn.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&database))
	const rows = 3 * copyRows
	for first := 1; first <= rows; first += 5000 {
		var follows, favorites []string
		for i := first; i < first+5000; i++ {
			follows = append(follows, fmt.Sprintf("(7, %d, 1, 9)", i))
			favorites = append(favorites, fmt.Sprintf("(7, %d, %d, 1, 9)", 100+i/3000, i))
		}
		for _, text := range []string{
			"INSERT INTO following (from_user_id, to_user_id, type, update_time) VALUES " + strings.Join(follows, ", "),
			"INSERT INTO favorite (from_user_id, to_user_id, post_id, type, update_time) VALUES " + strings.Join(favorites, ", "),
		} {
			_, err := conn.ExecContext(t.Context(), text)
			must.OK(t, err)
		}
	}
	s := &server{databases: []string{database}}
	for table, side := range copied {
		if side != storage.Forward && side != storage.Favorites {
			continue
		}
		state, pages, before := copyState{Table: table}, 0, rowsRead(t, conn)
		for n := 0; n < rows; pages++ {
			page, err := s.copyRange(context.Background(), conn, state)
			must.That(t, err == nil && len(page) > 0, "%s: a page behind %d rows: %d, %v", side, n, len(page), err)
			for _, row := range page {
				post := int64(0)
				if n++; side == storage.Favorites {
					post = int64(n)
				}
				must.That(t, row.Edge.To == storage.UserID(n) || row.Edge.Item == post && post > 0, "%s: row %d is %+v", side, n, row.Edge)
			}
			last := page[len(page)-1].Edge
			state.From, state.To, state.Post = last.From, last.To, last.Item
		}
		rest, err := s.copyRange(context.Background(), conn, state)
		check.That(t, err == nil && len(rest) == 0, "%s: behind the last: %d, %v", side, len(rest), err)
		check.Most(t, "rows of "+side.String()+" that are read", rowsRead(t, conn)-before, rows+200)
	}
}

// rowsRead is how many rows a connection has read so far.
func rowsRead(t *testing.T, conn *sql.Conn) (n int) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_rnd_next', 'Handler_read_prev')")
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var times int
		must.OK(t, rows.Scan(&name, &times))
		n += times
	}
	return n
}
