package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pressly/goose/v3/database"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

var sqliteDialect = &dialect{
	name:  "sqlite",
	goose: database.DialectSQLite3,

	maxKeys:  900,
	maxPairs: 450,
	maxPages: 500, // SQLITE_MAX_COMPOUND_SELECT
	maxRows:  250,

	insertIgnore: "INSERT OR IGNORE",
	limited:      "SELECT * FROM (%s)",
	upsert: func(key, sets string) string {
		return " ON CONFLICT (" + key + ") DO UPDATE SET " + newColumn.ReplaceAllString(sets, "excluded.$1")
	},
	// A list of row values is not searched by index here; a join from it is.
	edgesOf: func(t *edgeTable, pairs int) string {
		return "WITH wanted(o, p) AS (VALUES " + tuples(pairs, 2) + ")" +
			" SELECT " + t.columns + " FROM wanted CROSS JOIN " + t.name +
			" ON " + t.owner + " = o AND " + t.peer + " = p"
	},

	identity: func(_ context.Context, n *node) (string, error) {
		path, err := filepath.Abs(n.name)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(path)
	},

	crc:      func(text string) string { return "crc32(" + text + ")" },
	text:     func(column string) string { return "CAST(" + column + " AS TEXT)" },
	joined:   func(columns ...string) string { return strings.Join(columns, " || ',' || ") },
	quotient: func(a string, b int) string { return fmt.Sprintf("((%s) / %d)", a, b) },
	sum:      func(text string) string { return "SUM(" + text + ")" },

	retryable: func(err error) bool { return isSQLiteError(err, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED) },
	unavailable: func(err error) bool {
		return isSQLiteError(err, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED, sqlitelib.SQLITE_IOERR,
			sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_READONLY)
	},
}

// SQLite has no checksum of its own.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("crc32", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, ok := args[0].(string)
		if !ok {
			return nil, fmt.Errorf("crc32 of %T: it takes a text", args[0])
		}
		return int64(crc32.ChecksumIEEE([]byte(text))), nil
	})
}

func isSQLiteError(err error, codes ...int) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code()&0xff == code { // the low byte is the primary result code
			return true
		}
	}
	return false
}

// openSQLite opens one file, making it and its folder where missing. SQLite has
// one writer at a time, so the pool for writes has one connection.
func openSQLite(ctx context.Context, path string, c Config) (*node, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("the path of the database file is missing")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	write, err := sqlitePool(path, 1, "journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	if err := makeSQLite(ctx, write); err != nil {
		write.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	read, err := sqlitePool(path, c.MaxConns, "query_only(1)")
	if err != nil {
		write.Close()
		return nil, err
	}
	return &node{name: path, read: read, write: write, migrations: write}, nil
}

// makeSQLite makes the file by connecting to it. Changing a new file's journal to a
// WAL does not wait for another program that is about to do the same, hence the
// tries.
func makeSQLite(ctx context.Context, write *sql.DB) error {
	const tries = 10
	for try := 1; ; try++ {
		err := write.PingContext(ctx)
		if err == nil || !isSQLiteError(err, sqlitelib.SQLITE_BUSY) || try == tries || !pause(ctx, try) {
			return err
		}
	}
}

func sqlitePool(path string, conns int, pragmas ...string) (*sql.DB, error) {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		"busy_timeout(5000)",
		"synchronous(NORMAL)", // with a WAL: a power cut may lose the last commits, never tear one
		"cache_size(-65536)",  // 64 MiB
		"temp_store(MEMORY)",
	}, pragmas...)}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}
