package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/check"
	"kith/internal/must"
)

// MariaDBServer is a private MariaDB, or the [Engine] that is asked for instead. User and
// password are "app", with every right. It writes a binlog, if it has one, in the form that
// replication needs: ROW format, FULL image and metadata, a server id of its own.
type MariaDBServer struct{ *Server }

// MariaDB starts a server for t alone and removes it when t ends. More options of
// mariadbd ("--innodb-buffer-pool-size=1G") may follow; they win over the defaults.
func MariaDB(t testing.TB, options ...string) *MariaDBServer {
	t.Helper()
	if len(options) > 0 {
		NotOn(t, "the test needs options of mariadbd or mysqld", "tidb")
	}
	return startFor(t, chosenEngine(t), options)
}

// Database starts a server of the engine with a name, as [MariaDB] does for the [Engine] that is
// asked for: a test that compares engines starts several.
func Database(t testing.TB, engine string) *MariaDBServer {
	t.Helper()
	return startFor(t, engineNamed(t, engine), nil)
}

func startFor(t testing.TB, e *engine, options []string) *MariaDBServer {
	t.Helper()
	server, err := startDatabase(e, options)
	must.OK(t, err)
	t.Cleanup(func() {
		err := server.remove()
		check.That(t, err == nil, "%v", err)
	})
	return server
}

// DSN returns the go-sql-driver DSN of a database on this server, by TCP. An empty
// name is a connection without a database.
func (m *MariaDBServer) DSN(database string) string {
	return fmt.Sprintf("app:app@tcp(%s)/%s", m.Addr(), database)
}

// CreateDatabase makes an empty database and returns its DSN.
func (m *MariaDBServer) CreateDatabase(t testing.TB, name string) string {
	t.Helper()
	m.Exec(t, "CREATE DATABASE `"+name+"`")
	return m.DSN(name)
}

// Exec runs one statement, outside any database.
func (m *MariaDBServer) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	err := m.exec(context.Background(), statement, args...)
	must.That(t, err == nil, "%s: %v", statement, err)
}

// Open returns a connection pool to a database, closed when t ends.
func (m *MariaDBServer) Open(t testing.TB, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", m.DSN(database))
	must.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// exec uses a connection of its own, through the socket: no pool outlives the call,
// and nothing is left over from before a crash.
func (m *MariaDBServer) exec(ctx context.Context, statement string, args ...any) error {
	config := mysql.NewConfig()
	config.User, config.Passwd = "app", "app"
	config.Net, config.Addr = "unix", m.Socket()
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{} // what goes wrong is returned
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = db.ExecContext(ctx, statement, args...)
	return err
}

// KillConnections ends the connections of a user, or to a database, as an administrator does.
func (m *MariaDBServer) KillConnections(t testing.TB, userOrDatabase string) {
	t.Helper()
	db := m.Open(t, "")
	rows, err := db.Query(`SELECT id FROM information_schema.processlist WHERE user = ? OR db = ?`, userOrDatabase, userOrDatabase)
	must.OK(t, err)
	var ids []int64
	for rows.Next() {
		var id int64
		must.OK(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	must.OK(t, rows.Err())
	for _, id := range ids {
		_, err := db.Exec(fmt.Sprintf("KILL CONNECTION %d", id))
		e := (*mysql.MySQLError)(nil)
		must.That(t, err == nil || errors.As(err, &e) && e.Number == 1094, "KILL CONNECTION %d: %v", id, err) // it has ended by itself
	}
}

// ResetBinlog makes the server's binlog start over, as if nothing had been written to it before.
func (m *MariaDBServer) ResetBinlog(t testing.TB) {
	t.Helper()
	NeedsBinlog(t)
	if Engine() == "mysql" {
		m.Exec(t, "RESET BINARY LOGS AND GTIDS")
		return
	}
	m.Exec(t, "RESET MASTER")
}

// startDatabase starts a server with data of its own.
func startDatabase(e *engine, options []string) (*MariaDBServer, error) {
	dir, err := serverDir(e.name)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(tmpDir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("prepare %s data: %w", e.name, err)
	}
	if err := e.data(dir); err != nil {
		return nil, fmt.Errorf("prepare %s data: %w", e.name, err)
	}
	server := &MariaDBServer{&Server{
		kind:   e.name,
		bin:    e.bin,
		dir:    dir,
		args:   func(s *Server) []string { return append(e.args(s), options...) },
		answer: answersMariaDB,
	}}
	if err := server.start(); err != nil {
		return nil, err
	}
	return server, nil
}

// mariaDBEngine is MariaDB: the machine's own, or one that was unpacked in a folder.
func mariaDBEngine(mariadbd, installDB, folder string) *engine {
	common := append([]string{"--innodb-log-file-size=" + logFileSize}, asRoot()...)
	if folder != "" {
		common = append([]string{"--basedir=" + filepath.Join(folder, "usr")}, common...)
	}
	return &engine{
		name: "mariadb",
		bin:  mariadbd,
		args: func(s *Server) []string {
			return slices.Concat([]string{"--no-defaults"}, common, familyArgs(s), []string{ // first, or it is not understood
				"--query-cache-type=0", "--query-cache-size=0",
				"--performance-schema=OFF",
				"--key-buffer-size=8K", "--aria-pagecache-buffer-size=8M", // no table is large there, and a server prepares all of them when it starts
				"--gtid-strict-mode=ON",
				"--innodb-file-per-table=OFF",  // to make and drop the tables of a store takes a fifth less
				"--innodb-flush-method=nosync", // as below
			})
		},
		data: func(serverDir string) error {
			return copyTemplate(serverDir, "mariadb", mariadbd, common, func(draft, scratch string) error {
				return makeMariaDB(mariadbd, installDB, common, draft, scratch)
			})
		},
	}
}

// makeMariaDB initialises a data directory.
func makeMariaDB(mariadbd, installDB string, common []string, draft, scratch string) error {
	options := slices.Concat([]string{"--no-defaults", "--datadir=" + draft, "--tmpdir=" + scratch}, common)
	install := exec.Command(installDB, append(options, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", installDB, err, out)
	}
	bootstrap := exec.Command(mariadbd, append(options, "--bootstrap")...)
	bootstrap.Stdin = strings.NewReader(appUser + "DROP DATABASE sys;\n") // its hundred files would be copied for each server
	if out, err := bootstrap.CombinedOutput(); err != nil {
		return fmt.Errorf("%s --bootstrap: %w\n%s", mariadbd, err, out)
	}
	return nil
}

// familyArgs are the options that MariaDB and MySQL share: production's semantics, without the
// waits for a disk that only a power cut would justify.
func familyArgs(s *Server) []string {
	return []string{
		"--datadir=" + dataDir(s.dir),
		"--tmpdir=" + tmpDir(s.dir),
		"--socket=" + s.Socket(),
		"--pid-file=" + filepath.Join(s.dir, "pid"),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.port),
		"--skip-name-resolve",
		"--max-connections=500",
		"--local-infile=1",
		"--character-set-server=utf8mb4",
		"--innodb-buffer-pool-size=256M",
		"--innodb-flush-log-at-trx-commit=2", // survives kill -9: the page cache is the kernel's
		"--sync-binlog=0",
		"--log-bin=binlog",
		"--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
		"--server-id=" + strconv.Itoa(s.port), // unique among the servers of this machine
	}
}

// dataDir is where a server keeps its data.
func dataDir(serverDir string) string { return filepath.Join(serverDir, "data") }

// tmpDir is where a server keeps its temporary tables. Not the machine's /tmp: a server that starts
// removes the #sql files that it finds there, including those of other servers.
func tmpDir(serverDir string) string { return filepath.Join(serverDir, "tmp") }

// asRoot lets a server run as root, which it refuses to do without the option. Running it as
// another user is not possible: changing the user cancels the parent-death signal.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// answersMariaDB asks through the server's own socket, which the server opens after its port. Only
// this server answers there, not another one that has the port.
func answersMariaDB(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return (&MariaDBServer{s}).exec(ctx, "DO 1")
}

// HoldsCommits has a server hold back a commit for a time after it has logged it, as if it waited for a semi-synchronous replica: the next
// one after each call of hold.
func (m *MariaDBServer) HoldsCommits(t testing.TB, held time.Duration) (hold func()) {
	t.Helper()
	semiSync, replica := "SET GLOBAL rpl_semi_sync_master_", "slave"
	if Engine() == "mysql" {
		semiSync, replica = "SET GLOBAL rpl_semi_sync_source_", "replica"
		m.Exec(t, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
	}
	for _, setting := range []string{"wait_point = 'AFTER_SYNC'", fmt.Sprint("timeout = ", held.Milliseconds()), "wait_no_" + replica + " = ON"} {
		m.Exec(t, semiSync+setting)
	}
	return func() {
		m.Exec(t, semiSync+"enabled = OFF")
		m.Exec(t, semiSync+"enabled = ON")
	}
}
