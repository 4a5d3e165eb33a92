package sqlstore

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// To find when authors last posted takes one entry of an index for each author, even if one author has
// many posts and most have few, which is when MariaDB would read all of their entries.
func TestLastPostsReadAnEntryOfEachAuthor(t *testing.T) {
	testenv.NotOn(t, "it does not count the rows that a session reads", "tidb")
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	s, err := Open(t.Context(), Config{Location: "mysql:" + dsn, StatementTimeout: time.Minute, MaxConns: 1})
	must.OK(t, err)
	defer s.Close()
	db, err := sql.Open("mysql", dsn)
	must.OK(t, err)
	defer db.Close()
	const busy, many, others = 7, 10_000, 10_000
	for begin := 0; begin < many+others; begin += 5000 {
		rows := make([]string, 0, 5000)
		for n := begin; n < begin+5000; n++ {
			author := busy
			if n >= many {
				author = 100 + n
			}
			rows = append(rows, fmt.Sprintf("(%d, %d, '%d', 'x', '[]', %d)", author, n+1, n+1, n+1))
		}
		_, err := db.ExecContext(t.Context(), "INSERT INTO post (author_id, post_id, client_key, text, media, created_at) VALUES "+strings.Join(rows, ", "))
		must.OK(t, err)
	}
	_, err = db.ExecContext(t.Context(), "ANALYZE TABLE post")
	must.OK(t, err)
	authors := []storage.UserID{busy, 100 + many, 101 + many, 5}
	for upTo, want := range map[storage.Micros]storage.Micros{1 << 40: many, many / 2: many / 2} {
		before := rowsRead(t, s)
		r := storage.LastPostLookups.Read(t.Context(), s, storage.LastQuery{UpTo: upTo}.Of(authors)...)
		check.Most(t, fmt.Sprint("entries that were read up to ", upTo), rowsRead(t, s)-before, 2*len(authors))
		check.That(t, r[0].Value == want && r[1].Found == (upTo > many) && !r[3].Found, "up to %d: %+v", upTo, r)
	}
}
