package testenv

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MariaDBServer is a private MariaDB. User and password are "app", with every
// right. It writes a binlog as replication needs it: ROW format, FULL image and
// metadata, a server id of its own.
type MariaDBServer struct{ *Server }

// MariaDB starts a server for t alone and removes it when t ends. More options of
// mariadbd ("--innodb-buffer-pool-size=1G") may follow; they win over the defaults.
func MariaDB(t testing.TB, options ...string) *MariaDBServer {
	t.Helper()
	server, err := startMariaDB(program(t, "mariadbd"), program(t, "mariadb-install-db"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.remove(); err != nil {
			t.Error(err)
		}
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
	if err := m.exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Open returns a connection pool to a database, closed when t ends.
func (m *MariaDBServer) Open(t testing.TB, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", m.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
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

// startMariaDB starts a server on a copy of the template data directory.
func startMariaDB(mariadbd, installDB string, options []string) (*MariaDBServer, error) {
	dir, err := serverDir("mariadb")
	if err != nil {
		return nil, err
	}
	if err := copyTemplate(filepath.Join(dir, "data"), mariadbd, installDB); err != nil {
		return nil, fmt.Errorf("prepare mariadb data: %w", err)
	}
	if err := os.Mkdir(tmpDir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("prepare mariadb data: %w", err)
	}
	server := &MariaDBServer{&Server{
		kind:   "mariadb",
		bin:    mariadbd,
		dir:    dir,
		args:   func(s *Server) []string { return append(mariaDBArgs(s), options...) },
		answer: answersMariaDB,
	}}
	if err := server.start(); err != nil {
		return nil, err
	}
	return server, nil
}

// mariaDBArgs is the command line of a server: production's semantics, without the
// waits for a disk that only a power cut would justify.
func mariaDBArgs(s *Server) []string {
	return append([]string{
		"--no-defaults", // first, or it is not understood
		"--datadir=" + filepath.Join(s.dir, "data"),
		"--tmpdir=" + tmpDir(s.dir),
		"--socket=" + s.Socket(),
		"--pid-file=" + filepath.Join(s.dir, "pid"),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.port),
		"--skip-name-resolve",
		"--max-connections=500",
		"--local-infile=1",
		"--query-cache-type=0", "--query-cache-size=0",
		"--character-set-server=utf8mb4",
		"--performance-schema=OFF",
		"--innodb-buffer-pool-size=256M",
		"--innodb-flush-log-at-trx-commit=2", // survives kill -9: the page cache is the kernel's
		"--sync-binlog=0",
		"--log-bin=binlog",
		"--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
		"--gtid-strict-mode=ON",
		"--server-id=" + strconv.Itoa(s.port), // unique among the servers of this machine
	}, commonArgs()...)
}

// tmpDir is where a server keeps its temporary tables. Not the machine's /tmp: a
// server that starts removes the #sql files it finds there, another server's too.
func tmpDir(serverDir string) string { return filepath.Join(serverDir, "tmp") }

// commonArgs are the options that the template's making and the servers share.
func commonArgs() []string {
	args := []string{"--innodb-log-file-size=" + logFileSize}
	if os.Getuid() == 0 {
		// mariadbd refuses to run as root unless told to. Another user would not do:
		// changing it undoes the parent-death signal.
		args = append(args, "--user=root")
	}
	return args
}

// answersMariaDB asks through the server's own socket, which it opens after its
// port: what answers there is this server and no other that has the port.
func answersMariaDB(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return (&MariaDBServer{s}).exec(ctx, "DO 1")
}
