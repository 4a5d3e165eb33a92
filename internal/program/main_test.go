package program_test

import (
	"database/sql"
	"hash/crc32"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// database is the database of one shard, which a test reads beside the program.
type database struct{ driver, address string }

// newSQLite names n files that do not exist yet.
func newSQLite(t testing.TB, n int) []database {
	t.Helper()
	folder := t.TempDir()
	var list []database
	for i := range n {
		list = append(list, database{"sqlite", filepath.Join(folder, string(rune('a'+i))+".db")})
	}
	return list
}

// demoSQLite makes n files that hold the demo graph.
func demoSQLite(t testing.TB, n int) (list []database) {
	t.Helper()
	for path := range strings.SplitSeq(strings.TrimPrefix(kithtest.DemoStore(t, n), "sqlite:"), ";") {
		list = append(list, database{"sqlite", path})
	}
	return list
}

// newMariaDB makes n empty databases, an even number of them, on two servers.
func newMariaDB(t testing.TB, n int) []database {
	t.Helper()
	var list []database
	for _, dsn := range testenv.SharedMariaDB(t, 2).FreshDatabases(t, n/2) {
		list = append(list, database{"mysql", dsn})
	}
	return list
}

// onEachStore runs a test on SQLite files and on databases of two MariaDB servers.
func onEachStore(t *testing.T, test func(t *testing.T, make func(t testing.TB, n int) []database)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, newSQLite) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, newMariaDB) })
}

// onMariaDB runs a test on MariaDB, and on SQLite with the long tests: what dies there does so between the same steps, and each step is
// a transaction on both.
func onMariaDB(t *testing.T, test func(t *testing.T, make func(t testing.TB, n int) []database)) {
	if testenv.AllTests() {
		onEachStore(t, test)
		return
	}
	test(t, newMariaDB)
}

// written is a file with a text, in a folder of its own.
func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// location is the setting for a store that consists of the databases.
func location(shards ...database) string {
	var addresses []string
	for _, d := range shards {
		addresses = append(addresses, d.address)
	}
	return shards[0].driver + ":" + strings.Join(addresses, ";")
}

// open returns a connection pool, which is closed when t ends.
func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	address := d.address
	if d.driver == "sqlite" {
		address = (&url.URL{Scheme: "file", Opaque: address, RawQuery: "_pragma=busy_timeout(5000)"}).String()
	}
	db, err := sql.Open(d.driver, address)
	must.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// exec runs one statement.
func (d database) exec(t testing.TB, statement string) {
	t.Helper()
	db := d.open(t)
	defer db.Close()
	_, err := db.Exec(statement)
	must.That(t, err == nil, "%s: %s: %v", d.address, statement, err)
}

// text returns the one value that a query selects, "" for NULL.
func (d database) text(t testing.TB, query string) string {
	t.Helper()
	db := d.open(t)
	defer db.Close()
	var value sql.NullString
	err := db.QueryRow(query).Scan(&value)
	must.That(t, err == nil, "%s: %s: %v", d.address, query, err)
	return value.String
}

// endedWell checks that the program ended when it was asked to, and logged no complaint.
func endedWell(t testing.TB, end kithtest.End) {
	t.Helper()
	check.That(t, end.Code == 0 && !complaint.MatchString(end.Stderr), "ended with code %d and complaints:\n%s", end.Code, end.Stderr)
}

// complaint finds a log line above the level INFO, or a line that is not a log line.
var complaint = regexp.MustCompile(`(?m)^time=\S+ level=(WARN|ERROR) |^[^t\n]`)

// bucketShard is the shard that owns a user. The crc32 of the decimal id gives one of 1,024
// buckets, and each shard has a range of buckets.
func bucketShard(id int64, shards int) int {
	bucket := int(crc32.ChecksumIEEE([]byte(strconv.FormatInt(id, 10))) % 1024)
	for i := range shards {
		if bucket < (i+1)*1024/shards {
			return i
		}
	}
	return shards
}

// plain is an address in the form in which it is given for an added shard.
func plain(d database) string {
	if _, behind, found := strings.Cut(d.address, "@"); found {
		address, _, _ := strings.Cut(behind, "?")
		return address
	}
	return d.address
}
