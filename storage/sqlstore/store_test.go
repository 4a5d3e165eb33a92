package sqlstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// generous is a time limit that a busy machine does not reach.
const generous = 30 * time.Second

func TestConformanceSQLite(t *testing.T) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			t.Parallel()
			var only []string // all
			if shards > 1 && !testenv.AllTests() {
				// Several shards keep every promise on MariaDB, below. Only SQLite has the log.
				only = []string{"relationLog"}
			}
			storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, sqlite(t, shards)) }, only...)
		})
	}
}

func TestConformanceMariaDB(t *testing.T) {
	t.Parallel()
	servers := testenv.SharedMariaDB(t, 2)
	// To make the tables of a store takes longer than most promises about it, so stores that are closed are
	// emptied and opened again.
	var free [][]string
	fresh := func() []string { // two databases on one server, one on the other; they exist until the suite ends
		return append(bySocket(servers[0], servers[:1].FreshDatabases(t, 2)), bySocket(servers[1], servers[1:].FreshDatabases(t, 1))...)
	}
	storagetest.Run(t, func(t *testing.T) storage.Store {
		if len(free) == 0 {
			free = append(free, fresh())
		}
		dsns := free[0]
		free = free[1:]
		t.Cleanup(func() {
			for _, dsn := range dsns {
				empty(t, dsn)
			}
			free = append(free, dsns)
		})
		return open(t, mysql(dsns))
	})
}

// bySocket reaches databases of a server without TCP, which takes a sixth of the processor time of many small statements.
func bySocket(server *testenv.MariaDBServer, dsns []string) (by []string) {
	for _, dsn := range dsns {
		by = append(by, strings.Replace(dsn, "tcp("+server.Addr()+")", "unix("+server.Socket()+")", 1))
	}
	return by
}

// empty deletes the rows of all tables except those that say which tables exist, and whose they are.
func empty(t *testing.T, dsn string) {
	t.Helper()
	db := connect(t, dsn)
	tables := column(t, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT IN ('kith_meta', 'kith_epoch', 'kith_admitted', 'kith_buckets', 'kith_migrations')")
	must.That(t, len(tables) >= 15, "the tables are %v", tables)
	var filled []string // one statement finds the few that a topic writes
	for _, name := range tables {
		filled = append(filled, "SELECT '"+name+"' FROM DUAL WHERE EXISTS (SELECT * FROM `"+name+"`)")
	}
	for _, name := range column(t, db, strings.Join(filled, " UNION ALL ")) {
		_, err := db.Exec("DELETE FROM `" + name + "`")
		must.OK(t, err)
	}
}

// connect connects to the database of a shard by its address, until the test ends.
func connect(t *testing.T, address string) *sql.DB {
	t.Helper()
	driver := "mysql"
	if !strings.Contains(address, "(") {
		driver = "sqlite"
	}
	db, err := sql.Open(driver, address)
	must.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// execOn runs a statement on the database of a shard.
func execOn(t *testing.T, address, text string) {
	t.Helper()
	db := connect(t, address)
	defer db.Close()
	_, err := db.Exec(text)
	must.OK(t, err)
}

// column reads the texts that a query selects.
func column(t *testing.T, db *sql.DB, query string) (texts []string) {
	t.Helper()
	rows, err := db.Query(query)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		must.OK(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	must.OK(t, rows.Err())
	return texts
}

// sqlite is the location of a new store of a number of files.
func sqlite(t testing.TB, shards int) string {
	paths := make([]string, shards)
	for i := range paths {
		paths[i] = filepath.Join(t.TempDir(), fmt.Sprintf("kith%d.db", i))
	}
	return "sqlite:" + strings.Join(paths, ";")
}

func mysql(dsns []string) string { return "mysql:" + strings.Join(dsns, ";") }

func open(t testing.TB, location string) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: generous})
}
