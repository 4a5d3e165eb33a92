package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3/database"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"kith/storage"
	"kith/storage/sqlstore/internal/db/prepared"
)

var sqliteDialect = &Dialect{
	name:  "sqlite",
	goose: database.DialectSQLite3,

	// SQLite compares each argument of a statement with all before it whenever it plans one. Within these bounds statements have
	// at most [prepared.Longest] arguments: they are planned once.
	MaxKeys:  prepared.Longest,
	MaxPairs: prepared.Longest / 2,
	MaxPages: 32,
	MaxRows:  250,

	Limited: "SELECT * FROM (%s)",
	identity: func(_ context.Context, n *Shard) (string, error) {
		path, err := filepath.Abs(n.Name)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(path)
	},

	beginMoment: []string{"BEGIN DEFERRED"}, // its first SELECT fixes the moment; an immediate one would wait for writers

	HasLog: true,
	Moves:  true,

	retryable: func(err error) bool { return isSQLiteError(err, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED) },
	unavailable: func(err error) bool {
		return isSQLiteError(err, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED, sqlitelib.SQLITE_IOERR,
			sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_READONLY)
	},
}

// SQLite has neither an exclusive or nor an aggregate of it, and no CRC32.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("crc32", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		return int64(crc32.ChecksumIEEE(fmt.Append(nil, args[0]))), nil
	})
	sqlite.MustRegisterFunction("mix_of_edges", &sqlite.FunctionImpl{
		NArgs:         -1, // four, and the post of a favorite
		Deterministic: true,
		MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) { return new(mixOfEdges), nil },
	})
}

// mixOfEdges is a sum under way.
type mixOfEdges uint64

// WindowInverse removes a row, which is the same operation as adding it.
func (m *mixOfEdges) WindowInverse(c *sqlite.FunctionContext, args []driver.Value) error {
	return m.Step(c, args)
}

func (m *mixOfEdges) Step(_ *sqlite.FunctionContext, args []driver.Value) error {
	var v [5]int64
	if len(args) > len(v) {
		return fmt.Errorf("mix_of_edges of %d values", len(args))
	}
	for i, arg := range args {
		n, ok := arg.(int64)
		if !ok {
			return fmt.Errorf("mix_of_edges of %T: it takes integers", arg)
		}
		v[i] = n
	}
	*m ^= mixOfEdges(storage.Edge{
		From: storage.UserID(v[0]), To: storage.UserID(v[1]), Type: storage.EdgeType(v[2]), UpdateTime: storage.Micros(v[3]), Item: v[4],
	}.Mix())
	return nil
}

// WindowValue is the sum as text: SQLite has no unsigned integers.
func (m *mixOfEdges) WindowValue(*sqlite.FunctionContext) (driver.Value, error) {
	return strconv.FormatUint(uint64(*m), 10), nil
}

func (m *mixOfEdges) Final(*sqlite.FunctionContext) {}

func isSQLiteError(err error, codes ...int) bool {
	e, is := errors.AsType[*sqlite.Error](err)
	return is && slices.Contains(codes, e.Code()&0xff) // the low byte is the primary result code
}

// openSQLite opens one file, making it and its folder where missing. SQLite has
// one writer at a time, so the pool for writes has one connection.
func openSQLite(ctx context.Context, path string, c Config) (*Shard, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("the path of the database file is missing")
	}
	if _, err := os.Stat(path); c.MustExist && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", errNoStore, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	// Other accounts of the machine do not read it. The files beside it get its rights.
	if file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600); err == nil { // one that exists is left: closing it would end SQLite's locks on it
		_ = file.Close()
	}
	write, err := sqlitePool(path, 1, "journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	if err := makeSQLite(ctx, write); err != nil {
		write.Close()
		if isSQLiteError(err, sqlitelib.SQLITE_CANTOPEN) { // the system says why
			file, why := os.OpenFile(path, os.O_RDWR, 0)
			if why != nil {
				return nil, why
			}
			_ = file.Close()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	read, err := sqlitePool(path, c.MaxConns, "query_only(1)")
	if err != nil {
		write.Close()
		return nil, err
	}
	return &Shard{Name: path, Read: read, Write: write, migrations: write, dialect: sqliteDialect}, nil
}

// plannedOnce hides from the planner that a LIMIT is a parameter. It would look at the value, and plan the statement
// again whenever one is bound, also one that comes only once (sqlite3ExprIsInteger in SQLite's expr.c): a third of the time of a page.
func plannedOnce(text string) string { return strings.ReplaceAll(text, "LIMIT ?", "LIMIT ? + 0") }

// makeSQLite makes the file by connecting to it. Changing a new file's journal to a WAL does not
// wait for another program that is about to do the same, hence the tries. If another program keeps
// the file locked, the first try has waited for it.
func makeSQLite(ctx context.Context, write *sql.DB) error {
	const tries = 10
	began := time.Now()
	for try := 1; ; try++ {
		err := write.PingContext(ctx)
		if err == nil || !isSQLiteError(err, sqlitelib.SQLITE_BUSY) || try == tries || time.Since(began) > maxPatience || !pause(ctx, try) {
			return err
		}
	}
}

// sqlitePages is how many bytes of pages the connections of a pool keep, together: each has a cache of its own, which
// Go's memory limit does not count. The system keeps pages of the file as well.
const sqlitePages = 64 << 20

// walPages is how many pages (32 MB) the WAL takes before a commit writes them to the file: all writers wait for that, and for the disk two
// times. With SQLite's default, 1000, the mixed load was 1.2 to 1.3 times as slow on a disk whose fsync takes 20 ms.
const walPages = 8000

func sqlitePool(path string, conns int, pragmas ...string) (*sql.DB, error) {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		"busy_timeout(5000)",
		"synchronous(NORMAL)", // with a WAL: a power cut may lose the last commits, never tear one
		fmt.Sprintf("cache_size(-%d)", sqlitePages>>10/conns),
		fmt.Sprintf("wal_autocheckpoint(%d)", walPages),
		"temp_store(MEMORY)",
	}, pragmas...)}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}
	named, err := sql.Open("sqlite", u.String()) // opens nothing: it knows the driver that has the functions of init
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer named.Close()
	db := sql.OpenDB(prepared.Connector(prepared.Location(named.Driver(), u.String()), prepared.Database{Text: plannedOnce}))
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}
