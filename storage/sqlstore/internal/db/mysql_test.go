package db

import (
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestLockOfMigrationsKeepsItsName: gateways of different releases do not migrate at the same time.
// The name ends with the SHA-1 of the database's name.
func TestLockOfMigrationsKeepsItsName(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)[0]
	server.CreateDatabase(t, "kith_locked")
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE kith_locked") })
	const name = "kith_migrate.ed989cff17d1230e58c12895c0fdfacd7521c519"
	shard, err := openMySQL(t.Context(), server.DSN("kith_locked"), Config{}.withDefaults())
	must.OK(t, err)
	defer shard.close()
	conn, err := shard.migrations.Conn(t.Context())
	must.OK(t, err)
	defer conn.Close()
	isLocked := func() bool {
		t.Helper()
		var by sql.NullInt64
		must.OK(t, server.Open(t, "").QueryRow(`SELECT IS_USED_LOCK(?)`, name).Scan(&by))
		return by.Valid
	}
	must.OK(t, mysqlDialect.migrating.SessionLock(t.Context(), conn))
	check.That(t, isLocked(), "the lock has another name")
	must.OK(t, mysqlDialect.migrating.SessionUnlock(t.Context(), conn))
	check.That(t, !isLocked(), "the lock is not released")
}

// TestConnectionsAreMadeAnew: a gateway that only reads finds out within a minute that its address leads to another server.
func TestConnectionsAreMadeAnew(t *testing.T) {
	dsn := testenv.SharedMariaDB(t, 1)[0].DSN("")
	cfg, err := mysql.ParseDSN(dsn)
	must.OK(t, err)
	cfg.Timeout = maxPatience
	flavor, err := flavorOf(t.Context(), cfg)
	must.OK(t, err)
	synctest.Test(t, func(t *testing.T) {
		pool, err := mysqlPool(cfg, flavor, nil, lookAgain, time.Second, 1)
		must.OK(t, err)
		defer pool.Close()
		connection := func() (id int) {
			must.OK(t, pool.QueryRow("SELECT CONNECTION_ID()").Scan(&id))
			return id
		}
		first := connection()
		for range 13 { // it is never idle
			time.Sleep(5 * time.Second)
			connection()
		}
		check.That(t, connection() != first, "it is the same after a minute")
	})
}

// TestATransactionThatStandsStillEnds: a process that is stopped or cut off while it holds rows keeps them from others only for as
// long as connections live.
func TestATransactionThatStandsStillEnds(t *testing.T) {
	t.Parallel()
	server := testenv.SharedMariaDB(t, 1)[0]
	server.CreateDatabase(t, "kith_still")
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE kith_still") })
	cfg, err := mysql.ParseDSN(server.DSN("kith_still"))
	must.OK(t, err)
	cfg.Timeout = maxPatience
	flavor, err := flavorOf(t.Context(), cfg)
	must.OK(t, err)
	pool, err := mysqlPool(cfg, flavor, nil, 4*time.Second, 20*time.Second, 2)
	must.OK(t, err)
	defer pool.Close()
	_, err = pool.Exec("CREATE TABLE held (id INT PRIMARY KEY, n INT)")
	must.OK(t, err)
	_, err = pool.Exec("INSERT INTO held VALUES (1, 0)")
	must.OK(t, err)
	stopped, err := pool.Begin()
	must.OK(t, err)
	defer func() { _ = stopped.Rollback() }()
	_, err = stopped.Exec("UPDATE held SET n = 1")
	must.OK(t, err)
	_, err = pool.Exec("UPDATE held SET n = 2 WHERE n = 0") // waits for the row
	must.OK(t, err)
	check.That(t, stopped.Commit() != nil, "what stood still is committed over another write")
	var n int
	must.OK(t, pool.QueryRow("SELECT n FROM held").Scan(&n))
	check.Equal(t, "the row", n, 2)
}

// TestWhatIsTheServersFaultIsUnavailable: until its dump is in, a database is not there, or lacks tables; a full disk, an operator who ends
// a statement, and a server that lets nobody of this host or with this password in say nothing about the statement.
func TestWhatIsTheServersFaultIsUnavailable(t *testing.T) {
	for _, number := range []uint16{3, 1021, 1026, 1049, 1114, 1129, 1130, 1142, 1146, 1317, 1820, 1862} {
		err := mysqlDialect.StorageError(t.Context(), &mysql.MySQLError{Number: number})
		check.That(t, errors.Is(err, storage.ErrUnavailable), "%v", err)
	}
}
