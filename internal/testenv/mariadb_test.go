package testenv_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

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
	if err := first.Open(t, "kith").Ping(); err == nil {
		t.Fatal("a killed server answers")
	}
	first.Restart(t)

	if first.Addr() != addr || first.PID() == pid {
		t.Errorf("after Restart: address %s (was %s), pid %d (was %d)", first.Addr(), addr, first.PID(), pid)
	}
	if got := readInt(t, first.Open(t, "kith"), "SELECT n FROM t"); got != 1 {
		t.Errorf("first server holds %d, want 1", got)
	}
	if got := readInt(t, second.Open(t, "kith"), "SELECT n FROM t"); got != 2 {
		t.Errorf("second server holds %d, want 2", got)
	}
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
		if a, b := serverUUID(t, db), serverUUID(t, servers[1].Open(t, "")); a == b {
			t.Errorf("both servers are %s", a)
		}
	} else {
		want["gtid_strict_mode"], want["query_cache_size"] = "1", "0"
	}
	for name, value := range want {
		var got string
		must.OK(t, db.QueryRow("SELECT @@global."+name).Scan(&got))
		if got != value {
			t.Errorf("%s is %s, want %s", name, got, value)
		}
	}
	other := servers[1].Open(t, "")
	if a, b := readInt(t, db, "SELECT @@server_id"), readInt(t, other, "SELECT @@server_id"); a == b {
		t.Errorf("both servers have server id %d", a)
	}
}

func serverUUID(t *testing.T, db *sql.DB) (uuid string) {
	t.Helper()
	must.OK(t, db.QueryRow("SELECT @@server_uuid").Scan(&uuid))
	return uuid
}

func TestMariaDBOptionsWin(t *testing.T) {
	server := testenv.MariaDB(t, "--max-connections=17")
	if got := readInt(t, server.Open(t, ""), "SELECT @@max_connections"); got != 17 {
		t.Errorf("max_connections is %d, want 17", got)
	}
}

func TestStopEndsAndRestartReturns(t *testing.T) {
	server := testenv.MariaDB(t)
	server.Stop(t)
	server.Stop(t) // a server that is down stays down
	if err := server.Open(t, "").Ping(); err == nil {
		t.Error("a stopped server answers")
	}
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
	if _, err := db.ExecContext(ctx, "DO 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server: got error %v, want the deadline", err)
	}
	server.Thaw(t)
	if _, err := db.Exec("DO 1"); err != nil {
		t.Errorf("a thawed server: %v", err)
	}
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
		if len(dsns) != 4 {
			t.Fatalf("2 servers with 2 databases each gave %d DSNs", len(dsns))
		}
		before[1].Kill(t)
	})
	after := testenv.SharedMariaDB(t, 2)
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("server %d is another one", i)
		}
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
			if _, err := db.Exec("CREATE TABLE t (n INT PRIMARY KEY)"); err != nil {
				t.Error(err)
			}
			seen[dsn] = true
		}
		if len(seen) != 4 {
			t.Errorf("%d different databases, want 4", len(seen))
		}
		if got := readInt(t, servers[1].Open(t, ""), count); got != 2 {
			t.Errorf("the second server has %d databases, want 2", got)
		}
	})
	for i, server := range servers {
		if got := readInt(t, server.Open(t, ""), count); got != 0 {
			t.Errorf("server %d still has %d databases", i, got)
		}
	}
}

func readInt(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
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
		if _, err := conn.ExecContext(t.Context(), "DO 1"); err != nil { // TiDB lists a connection under its database only after a statement
			t.Fatal(err)
		}
		conns[i] = conn
	}
	server.KillConnections(t, databases[0])
	if _, err := conns[0].ExecContext(t.Context(), "DO 1"); err == nil {
		t.Error("a killed connection answers")
	}
	if _, err := conns[1].ExecContext(t.Context(), "DO 1"); err != nil {
		t.Errorf("that of another database: %v", err)
	}
}

func TestUnknownEngineFails(t *testing.T) {
	t.Setenv("KITH_TEST_ENGINE", "oracle")
	if got := outcome(t, func(t testing.TB) { testenv.MariaDB(t) }); got != "failed" {
		t.Errorf("got %s", got)
	}
}

func TestMissingEngineSkipsAndFailsUnderCI(t *testing.T) {
	t.Setenv("KITH_TEST_ENGINE", "tidb")
	t.Setenv("KITH_TEST_ENGINES", t.TempDir())
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		if got := outcome(t, func(t testing.TB) { testenv.MariaDB(t) }); got != want {
			t.Errorf("CI=%s: got %s, want %s", ci, got, want)
		}
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
	if dirs[0] == dirs[1] {
		t.Errorf("both servers keep temporary tables in %s", dirs[0])
	}
}
