package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestWaitsForLocksEndOnTheServer: a write whose caller has gone does not occupy the server for
// longer than a write may take. The test uses an UPDATE, because MySQL's time limit is only for SELECTs.
func TestWaitsForLocksEndOnTheServer(t *testing.T) {
	server, database, dsn := freshDatabase(t)
	store := opened.Store(t, sqlstore.Config{Location: "mysql:" + dsn, StatementTimeout: 200 * time.Millisecond})
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}}))
	tx, err := server.Open(t, database).BeginTx(t.Context(), nil)
	must.OK(t, err)
	defer tx.Rollback()
	_, err = tx.Exec("SELECT user_id FROM user_counts WHERE user_id = 1 FOR UPDATE")
	must.OK(t, err)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = store.MarkActive(ctx, []storage.UserID{1}, 5)
	}()
	waiting := func() int { return running(t, server, database, "%UPDATE user_counts%") }
	for waiting() == 0 {
		time.Sleep(20 * time.Millisecond)
	}
	began := time.Now()
	leave()
	<-gone
	for waiting() > 0 {
		must.That(t, time.Since(began) <= 20*time.Second, "the server still waits for the lock")
		time.Sleep(50 * time.Millisecond)
	}
}

// TestAServerWithoutRoomIsAskedOverWhatThereIs: while others hold all further connections to it, reads and writes share the few that the store has.
func TestAServerWithoutRoomIsAskedOverWhatThereIs(t *testing.T) {
	testenv.NotOn(t, "its bound is another one", "tidb")
	t.Parallel()
	server := testenv.MariaDB(t, "--max-connections=12")
	store, others := peopled(t, mysql([]string{server.CreateDatabase(t, "kith")}), 40), server.Open(t, "")
	for {
		conn, err := others.Conn(t.Context())
		if err != nil {
			check.Says(t, "the last of the others", err, "Too many connections")
			break
		}
		defer conn.Close()
	}
	var asking sync.WaitGroup
	for id := storage.UserID(1); id < 40; id++ {
		asking.Go(func() {
			check.Is(t, "a read", storage.ProfileLookups.Read(t.Context(), store, id)[0].Err, nil)
			check.Is(t, "a write", changeEdge(t.Context(), store, id, id+1, storage.Following, 0).Err, nil)
		})
	}
	asking.Wait()
}

// waits counts how often a request waits for a server, and goes on.
type waits struct{ began, ended atomic.Int64 }

func (w *waits) Wait(context.Context) func() {
	w.began.Add(1)
	return func() { w.ended.Add(1) }
}

// TestRequestsWaitForServers: while a server works on a SELECT its request is said to wait. What SQLite does is work of the request.
func TestRequestsWaitForServers(t *testing.T) {
	_, _, dsn := freshDatabase(t)
	for location, want := range map[string]int64{"mysql:" + dsn: 1, "sqlite:" + filepath.Join(t.TempDir(), "kith.db"): 0} {
		store := opened.Store(t, sqlstore.Config{Location: location})
		var w waits
		_, err := storage.UserLookups.Get(storage.WithWait(t.Context(), w.Wait), store, 1)
		must.OK(t, err)
		if w.began.Load() != want || w.ended.Load() != want {
			t.Errorf("%.6s: a request waits %d times and goes on %d times, want %d", location, w.began.Load(), w.ended.Load(), want)
		}
	}
}

// freshDatabase is an empty database of a server that tests share.
func freshDatabase(t *testing.T) (server *testenv.MariaDBServer, database, dsn string) {
	t.Helper()
	servers := testenv.SharedMariaDB(t, 1)
	dsn = servers.FreshDatabases(t, 1)[0]
	return servers[0], dsn[strings.LastIndex(dsn, "/")+1:], dsn
}

// running returns how many statements that look like this run in a database.
func running(t *testing.T, server *testenv.MariaDBServer, database, like string) (n int) {
	t.Helper()
	err := server.Open(t, "").QueryRow(`
SELECT COUNT(*)
FROM information_schema.processlist
WHERE db = ? AND info LIKE ? AND command <> 'Sleep' AND id <> CONNECTION_ID()`, database, like).Scan(&n)
	must.OK(t, err)
	return n
}

// TestALookUpLeavesNothingOpen: also on a server whose sessions begin with autocommit off. A migration would wait for it, and
// everybody else behind the migration.
func TestALookUpLeavesNothingOpen(t *testing.T) {
	server, database, dsn := freshDatabase(t)
	store := opened.Store(t, sqlstore.Config{Location: "mysql:" + dsn + "?autocommit=0"})
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}}))
	must.That(t, storage.ProfileLookups.Read(t.Context(), store, 1)[0].Found, "no user")
	db := server.Open(t, database)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"SET lock_wait_timeout = 2", "ALTER TABLE users COMMENT 'altered'"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestASelectIsWhole: a limit of all answers, which a server may have against careless programs, would take rows out of lists.
func TestASelectIsWhole(t *testing.T) {
	_, _, dsn := freshDatabase(t)
	store := opened.Store(t, sqlstore.Config{Location: "mysql:" + dsn + "?sql_select_limit=1"})
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}}))
	for i, r := range storage.UserLookups.Read(t.Context(), store, 1, 2) {
		must.That(t, r.Found, "user %d is not found: %v", i+1, r.Err)
	}
}

// TestAReadOnlyServerIsRead: where nothing is to be migrated, nothing is written, so that a server which takes no writes can be exported.
func TestAReadOnlyServerIsRead(t *testing.T) {
	testenv.NotOn(t, "it cannot be made read-only", "tidb")
	server := testenv.MariaDB(t)
	made := opened.Store(t, sqlstore.Config{Location: "mysql:" + server.CreateDatabase(t, "kith")})
	must.All(t, made.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}}))
	server.Exec(t, "CREATE USER kith IDENTIFIED BY 'kith'") // who may not write nevertheless
	server.Exec(t, "GRANT ALL ON kith.* TO kith")
	server.Exec(t, "SET GLOBAL read_only = 1")
	store := opened.Store(t, sqlstore.Config{Location: "mysql:kith:kith@tcp(" + server.Addr() + ")/kith", MustExist: true})
	must.That(t, storage.ProfileLookups.Read(t.Context(), store, 1)[0].Found, "no user")
}
