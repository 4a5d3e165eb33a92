package testenv_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMariaDBKeepsDataOverKill(t *testing.T) {
	first, second := testenv.MariaDB(t), testenv.MariaDB(t)
	for _, server := range []*testenv.MariaDBServer{first, second} {
		server.CreateDatabase(t, "kith")
		server.Exec(t, "CREATE TABLE kith.t (n INT PRIMARY KEY)")
	}
	first.Exec(t, "INSERT INTO kith.t VALUES (?)", 1)
	second.Exec(t, "INSERT INTO kith.t VALUES (?)", 2)

	addr, pid := first.Addr(), first.PID()
	first.Kill(t)
	must.That(t, first.Open(t, "kith").Ping() != nil, "a killed server answers")
	first.Restart(t)

	if first.Addr() != addr || first.PID() == pid {
		t.Errorf("after Restart: address %s (was %s), pid %d (was %d)", first.Addr(), addr, first.PID(), pid)
	}
	check.Equal(t, "the first server's number", readInt(t, first.Open(t, "kith"), "SELECT n FROM t"), 1)
	check.Equal(t, "the second server's number", readInt(t, second.Open(t, "kith"), "SELECT n FROM t"), 2)
}

func TestMariaDBSettings(t *testing.T) {
	testenv.NotOn(t, "it has none of these settings", "tidb")
	servers := testenv.SharedMariaDB(t, 2)
	db := servers[0].Open(t, "")
	want := map[string]string{
		"log_bin":                        "1",
		"binlog_format":                  "ROW",
		"binlog_row_image":               "FULL",
		"binlog_row_metadata":            "FULL",
		"local_infile":                   "1",
		"max_connections":                "500",
		"performance_schema":             "0",
		"skip_name_resolve":              "1",
		"character_set_server":           "utf8mb4",
		"innodb_flush_log_at_trx_commit": "2",
	}
	if testenv.Engine() == "mysql" {
		want["gtid_mode"] = "ON"
		a, b := serverUUID(t, db), serverUUID(t, servers[1].Open(t, ""))
		check.That(t, a != b, "both servers are %s", a)
	} else {
		want["gtid_strict_mode"], want["query_cache_size"] = "1", "0"
	}
	for name, value := range want {
		var got string
		must.OK(t, db.QueryRow("SELECT @@global."+name).Scan(&got))
		check.Equal(t, name, got, value)
	}
	other := servers[1].Open(t, "")
	a, b := readInt(t, db, "SELECT @@server_id"), readInt(t, other, "SELECT @@server_id")
	check.That(t, a != b, "both servers have server id %d", a)
}

func serverUUID(t *testing.T, db *sql.DB) (uuid string) {
	t.Helper()
	must.OK(t, db.QueryRow("SELECT @@server_uuid").Scan(&uuid))
	return uuid
}

func TestMariaDBOptionsWin(t *testing.T) {
	server := testenv.MariaDB(t, "--max-connections=17")
	check.Equal(t, "max_connections", readInt(t, server.Open(t, ""), "SELECT @@max_connections"), 17)
}

func TestStopEndsAndRestartReturns(t *testing.T) {
	server := testenv.MariaDB(t)
	server.Stop(t)
	server.Stop(t) // a server that is down stays down
	check.That(t, server.Open(t, "").Ping() != nil, "a stopped server answers")
	server.Restart(t)
	server.Exec(t, "DO 1")
}

func TestFreezeAndThaw(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)[0]
	db := server.Open(t, "")
	must.OK(t, db.Ping())

	server.Freeze(t)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(ctx, "DO 1")
	check.That(t, errors.Is(err, context.DeadlineExceeded), "a frozen server: got error %v, want the deadline", err)
	server.Thaw(t)
	_, err = db.Exec("DO 1")
	check.Is(t, "a thawed server", err, nil)
}

func TestStopWakesAFrozenServer(t *testing.T) {
	server := testenv.MariaDB(t)
	server.Freeze(t)
	server.Stop(t)
}

func TestSharedServersAreTheSameAndComeBack(t *testing.T) {
	before := testenv.SharedMariaDB(t, 2)
	t.Run("a test that kills one", func(t *testing.T) {
		dsns := before.FreshDatabases(t, 2)
		must.Equal(t, "databases of 2 servers with 2 each", len(dsns), 4)
		before[1].Kill(t)
	})
	after := testenv.SharedMariaDB(t, 2)
	for i := range before {
		check.That(t, before[i] == after[i], "server %d is another one", i)
		after[i].Exec(t, "DO 1")
	}
}

func TestFreshDatabasesAreEmptyAndDropped(t *testing.T) {
	servers := testenv.SharedMariaDB(t, 2)
	const count = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'kith\\_%'"
	t.Run("uses them", func(t *testing.T) {
		seen := map[string]bool{}
		for _, dsn := range servers.FreshDatabases(t, 2) {
			db, err := sql.Open("mysql", dsn)
			must.OK(t, err)
			defer db.Close()
			_, err = db.Exec("CREATE TABLE t (n INT PRIMARY KEY)")
			check.That(t, err == nil, "%v", err)
			seen[dsn] = true
		}
		check.Equal(t, "different databases", len(seen), 4)
		check.Equal(t, "databases of the second server", readInt(t, servers[1].Open(t, ""), count), 2)
	})
	for i, server := range servers {
		check.Equal(t, fmt.Sprint("databases that are left on server ", i), readInt(t, server.Open(t, ""), count), 0)
	}
}

func readInt(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	err := db.QueryRow(query).Scan(&n)
	must.That(t, err == nil, "%s: %v", query, err)
	return n
}

// Connections of others stay open.
func TestKillConnections(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)[0]
	databases := []string{"kith_cut", "kith_left"}
	for _, name := range databases {
		server.CreateDatabase(t, name)
		t.Cleanup(func() { server.Exec(t, "DROP DATABASE "+name) })
	}
	var conns [2]*sql.Conn
	for i, name := range databases {
		conn, err := server.Open(t, name).Conn(t.Context())
		must.OK(t, err)
		_, err = conn.ExecContext(t.Context(), "DO 1")
		must.OK(t, err) // TiDB lists a connection under its database only after a statement
		conns[i] = conn
	}
	server.KillConnections(t, databases[0])
	_, err := conns[0].ExecContext(t.Context(), "DO 1")
	check.That(t, err != nil, "a killed connection answers")
	_, err = conns[1].ExecContext(t.Context(), "DO 1")
	check.Is(t, "that of another database", err, nil)
}

func TestUnknownEngineFails(t *testing.T) {
	t.Setenv("KITH_TEST_ENGINE", "oracle")
	check.Equal(t, "an unknown engine", outcome(t, func(t testing.TB) { testenv.MariaDB(t) }), "failed")
}

func TestMissingEngineSkipsAndFailsUnderCI(t *testing.T) {
	t.Setenv("KITH_TEST_ENGINE", "tidb")
	t.Setenv("KITH_TEST_ENGINES", t.TempDir())
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		check.Equal(t, "with CI="+ci, outcome(t, func(t testing.TB) { testenv.MariaDB(t) }), want)
	}
}

// A server that starts removes #sql files from its temporary directory, so no two servers may share one.
func TestTemporaryTablesAreEachServersOwn(t *testing.T) {
	testenv.NotOn(t, "it shows no directory", "tidb")
	first, second := testenv.MariaDB(t), testenv.MariaDB(t)
	var dirs [2]string
	for i, server := range []*testenv.MariaDBServer{first, second} {
		server.CreateDatabase(t, "kith")
		must.OK(t, server.Open(t, "kith").QueryRow("SELECT @@tmpdir").Scan(&dirs[i]))
	}
	check.That(t, dirs[0] != dirs[1], "both servers keep temporary tables in %s", dirs[0])
}
