package prepared_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/sqlstore/internal/db/prepared"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// one is a single connection that keeps statements, to a server that prepares at most a given number of them.
func one(t *testing.T, most int) *sql.DB {
	t.Helper()
	server := testenv.MariaDB(t)
	server.CreateDatabase(t, "kith")
	server.Exec(t, "CREATE TABLE kith.t (n BIGINT PRIMARY KEY, word VARCHAR(20))")
	server.Exec(t, "INSERT INTO kith.t VALUES (1, 'one'), (2, 'two')")
	server.Exec(t, fmt.Sprintf("SET GLOBAL max_prepared_stmt_count = %d", most))
	config, err := mysql.ParseDSN(server.DSN("kith"))
	must.OK(t, err)
	config.InterpolateParams = true
	inner, err := mysql.NewConnector(config)
	must.OK(t, err)
	db := sql.OpenDB(prepared.Connector(inner, prepared.Database{Server: true, Implicit: true}))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func status(t *testing.T, db *sql.DB, name string) (n int) {
	t.Helper()
	var ignored string
	must.OK(t, db.QueryRow("SHOW SESSION STATUS LIKE '"+name+"'").Scan(&ignored, &n))
	return n
}

func word(t *testing.T, db *sql.DB, n int) (word string) {
	t.Helper()
	must.OK(t, db.QueryRowContext(t.Context(), "SELECT word FROM t WHERE n = ?", n).Scan(&word))
	return word
}

func TestWhatIsRepeatedIsPrepared(t *testing.T) {
	testenv.NotOn(t, "it counts no prepared statements", "tidb")
	db := one(t, 100)
	for i := range 6 {
		check.Equal(t, fmt.Sprintf("answer %d", i), word(t, db, 1+i%2), []string{"one", "two"}[i%2])
	}
	tx, err := db.BeginTx(t.Context(), nil)
	must.OK(t, err)
	for i := range 3 {
		_, err := tx.ExecContext(t.Context(), "UPDATE t SET word = ? WHERE n = ?", fmt.Sprint("w", i), 2)
		must.OK(t, err)
	}
	must.OK(t, tx.Commit())
	check.Equal(t, "after the update", word(t, db, 2), "w2")
	prepares, executions := status(t, db, "Com_stmt_prepare"), status(t, db, "Com_stmt_execute")
	check.That(t, prepares == 2 && executions == 6+2, "%d prepared, %d executed; want 2 and 8", prepares, executions)
}

func TestFewAreKept(t *testing.T) {
	testenv.NotOn(t, "it counts no prepared statements", "tidb")
	db := one(t, 1000)
	for i := range 100 {
		for range 3 {
			var n int
			err := db.QueryRow(fmt.Sprintf("SELECT n + %d FROM t WHERE n = ?", i), 1).Scan(&n)
			must.That(t, err == nil && n == i+1, "statement %d: %d, %v", i, n, err)
		}
	}
	check.Equal(t, "statements are prepared", status(t, db, "Prepared_stmt_count"), 64)
	many := make([]any, 300)
	for i := range many {
		many[i] = i
	}
	before := status(t, db, "Com_stmt_prepare")
	ask := func(times int) (prepared int) {
		for range times {
			rows, err := db.Query("SELECT n FROM t WHERE n IN (?"+strings.Repeat(",?", 299)+")", many...)
			must.OK(t, err)
			rows.Close()
		}
		return status(t, db, "Com_stmt_prepare") - before
	}
	check.That(t, ask(7) == 0, "a statement of 300 arguments that came 7 times was prepared")
	check.Equal(t, "preparations of a statement of 300 arguments that came 10 times", ask(3), 1)
}

func TestAServerThatPreparesNoMoreStillAnswers(t *testing.T) {
	db := one(t, 0)
	for range 20 {
		check.Equal(t, "the word", word(t, db, 1), "one")
	}
}

func TestErrorsAndTheEndOfAContextComeThrough(t *testing.T) {
	db := one(t, 100)
	for range 4 {
		_, err := db.Exec("INSERT INTO t VALUES (?, ?)", 1, "again")
		check.Says(t, "a duplicate", err, "Duplicate entry")
		_, err = db.Query("SELECT nothing FROM t WHERE n = ?", 1)
		check.Says(t, "an unknown column", err, "Unknown column")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.QueryContext(ctx, "SELECT word FROM t WHERE n = ?", 1)
	check.That(t, err != nil, "a context that has ended: no error")
	check.Equal(t, "afterwards", word(t, db, 1), "one")
}

// A transaction begins without a round trip of its own, and a statement outside a transaction commits by itself.
func TestTransactionsBeginWithTheirFirstStatement(t *testing.T) {
	testenv.NotOn(t, "it counts no statements", "tidb")
	db := one(t, 100)
	begun := status(t, db, "Com_begin")
	change := func(end func(*sql.Tx) error, word string) {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		must.OK(t, err)
		_, err = tx.ExecContext(t.Context(), "UPDATE t SET word = ? WHERE n = ?", word, 1)
		must.OK(t, err)
		must.OK(t, end(tx))
	}
	for _, c := range []struct {
		end  func(*sql.Tx) error
		word string
		want string
	}{{(*sql.Tx).Commit, "a", "a"}, {(*sql.Tx).Rollback, "b", "a"}, {(*sql.Tx).Commit, "c", "c"}} {
		change(c.end, c.word)
		check.Equal(t, c.word, word(t, db, 1), c.want)
	}
	_, err := db.ExecContext(t.Context(), "UPDATE t SET word = ? WHERE n = ?", "alone", 2)
	must.OK(t, err)
	change((*sql.Tx).Rollback, "d") // and nothing else
	check.Equal(t, "a statement outside of a transaction was rolled back", word(t, db, 2), "alone")
	check.Equal(t, "transactions that a statement of its own began", status(t, db, "Com_begin"), begun)
}

// A connection whose transaction could not be ended is not used again.
func TestWhatCannotBeEndedIsNotContinued(t *testing.T) {
	db := one(t, 100)
	tx, err := db.BeginTx(t.Context(), nil)
	must.OK(t, err)
	var id int
	must.OK(t, tx.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	_, err = tx.ExecContext(t.Context(), "UPDATE t SET word = ? WHERE n = ?", "lost", 1)
	must.OK(t, err)
	if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("KILL CONNECTION %d", id)); err == nil {
		t.Log("the connection outlived its end for one statement")
	}
	check.That(t, tx.Commit() != nil, "a transaction whose connection is gone was committed")
	check.Equal(t, "afterwards", word(t, db, 1), "one")
}

// What is written for the driver is so the first time too: a statement that comes once is planned once.
func TestTextIsWrittenEachTime(t *testing.T) {
	db := sql.OpenDB(prepared.Connector(prepared.Location(&sqlite.Driver{}, ":memory:"), prepared.Database{
		Text: func(text string) string { return strings.ReplaceAll(text, "LIMIT ?", "LIMIT ? + 1") },
	}))
	defer db.Close()
	db.SetMaxOpenConns(1)
	for i := range 3 {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM (SELECT 1 UNION ALL SELECT 1 LIMIT ?)", 1).Scan(&n)
		check.That(t, err == nil && n == 2, "time %d: %d rows, %v", i+1, n, err)
	}
}
