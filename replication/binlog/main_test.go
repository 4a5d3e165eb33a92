package binlog_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sqlstore"
)

// patience bounds every wait. It is long, and is only reached if something is wrong.
const patience = 60 * time.Second

// isMySQL reports whether the servers are MySQL's, where some statements differ.
func isMySQL() bool { return testenv.Engine() == "mysql" }

// world is a store on real servers, with the operations that tests do on it.
type world struct {
	dsns  []string
	store *sqlstore.Store
	clock atomic.Int64
	log   *logged.Text
	pools sync.Map // of *sql.DB, by DSN, because waits ask all tables again and again
}

// newWorld lays out a store over databases of servers that tests share.
func newWorld(t testing.TB) *world {
	t.Helper()
	testenv.NeedsBinlog(t)
	return worldOn(t, testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)...)
}

// newPrivateWorld makes a world on a server of its own, with two databases.
func newPrivateWorld(t testing.TB, options ...string) (*world, *testenv.MariaDBServer) {
	t.Helper()
	testenv.NeedsBinlog(t)
	server := testenv.MariaDB(t, options...)
	return worldOn(t, server.CreateDatabase(t, "kith_a"), server.CreateDatabase(t, "kith_b")), server
}

func worldOn(t testing.TB, dsns ...string) *world {
	t.Helper()
	testenv.NeedsBinlog(t)
	w := &world{dsns: dsns, log: &logged.Text{}}
	w.store = openStore(t, dsns)
	w.clock.Store(time.Now().UnixMicro())
	t.Cleanup(w.close)
	return w
}

func openStore(t testing.TB, dsns []string) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Location: "mysql:" + strings.Join(dsns, ";")})
	must.OK(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// witness is a publisher that remembers what was published.
type witness struct {
	mu    sync.Mutex
	rows  map[storage.Row]int
	users map[storage.UserID]storage.Aspects // that have changed
	gap   bool
}

func (w *witness) Publish(_ context.Context, rows []storage.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range rows {
		w.rows[r]++
	}
}

func (w *witness) changed(_ context.Context, c storage.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = w.gap || c.Gap
	for _, u := range c.Users {
		w.users[u.User] |= u.What
	}
}

// saw reports whether something about a user has changed.
func (w *witness) saw(id storage.UserID, what storage.Aspects) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.users[id].Has(what)
}

func (w *witness) sawGap() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gap
}

func (w *witness) published(e storage.Edge) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[storage.Row{Side: storage.Forward, Edge: e}] > 0
}

// running is a replicator that is running.
type running struct {
	*witness
	applier *replication.Applier
	binlog  *binlog.Replicator
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // of Run
}

// replicate starts a replicator that is stopped when t ends.
func (w *world) replicate(t testing.TB, change ...func(*binlog.Config)) *running {
	t.Helper()
	return w.replicateTo(t, w.store, change...)
}

// replicateTo starts a replicator that writes the inverse rows through another writer.
func (w *world) replicateTo(t testing.TB, to storage.EdgeWriter, change ...func(*binlog.Config)) *running {
	t.Helper()
	r := &running{
		witness: &witness{rows: map[storage.Row]int{}, users: map[storage.UserID]storage.Aspects{}},
		ended:   make(chan struct{}),
	}
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	r.applier = replication.New(replication.Config{
		Store: to, Shards: len(w.dsns), Publisher: r.witness, Logger: logger,
	})
	cfg := binlog.Config{
		DSNs: w.dsns, Applier: r.applier, Store: w.store, Checkpoints: w.store, Changed: r.changed, Logger: logger,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.binlog = binlog.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		go r.applier.Run(ctx)
		r.err = r.binlog.Run(ctx)
	}()
	t.Cleanup(func() { r.stop(t) })
	return r
}

// shardOf is the shard of a user.
func (r *running) shardOf(id storage.UserID) int { return storage.NewShardMap(2).Of(id) }

// stop ends the replicator properly.
func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Error("the replicator does not end")
	}
}

// stopped waits until the replication of a server has stopped, ends that of the others, and returns the reason.
func (r *running) stopped(t testing.TB) (stop *binlog.StopError) {
	t.Helper()
	must.OKSoon(t, func() error {
		list := r.binlog.Status()
		for _, s := range list {
			if s.State == binlog.Stopped && errors.As(s.Err, &stop) {
				return nil
			}
		}
		return fmt.Errorf("no server is stopped: %+v", list)
	})
	r.stop(t)
	if followed := func(s binlog.Status) bool { return s.State != binlog.Stopped }; slices.ContainsFunc(r.binlog.Status(), followed) && r.err != nil {
		t.Errorf("it followed another server until it was to end, and fails: %v", r.err)
	}
	return stop
}

// await waits until every server is in a state.
func (r *running) await(t testing.TB, state binlog.State) {
	t.Helper()
	must.OKSoon(t, func() error {
		list := r.binlog.Status()
		for _, s := range list {
			if s.State != state {
				return fmt.Errorf("%+v", list)
			}
		}
		if len(list) == 0 {
			return errors.New("no servers yet")
		}
		return nil
	})
}

// awaitSome waits until at least one server is in the state.
func (r *running) awaitSome(t testing.TB, state binlog.State) {
	t.Helper()
	must.OKSoon(t, func() error {
		list := r.binlog.Status()
		if slices.ContainsFunc(list, func(s binlog.Status) bool { return s.State == state }) {
			return nil
		}
		return fmt.Errorf("%+v", list)
	})
}

// tick is the next reading of the test's clock.
func (w *world) tick() storage.Micros {
	return storage.Micros(max(w.clock.Add(1), time.Now().UnixMicro()))
}

// write writes the forward rows of follows and unfollows.
func (w *world) write(t testing.TB, edges ...storage.Edge) {
	t.Helper()
	must.OK(t, w.tryWrite(edges...))
}

func (w *world) tryWrite(edges ...storage.Edge) error {
	for _, r := range w.store.Apply(context.Background(), storage.Forward, edges, storage.IfNewer) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// follow is a follow at the present time.
func (w *world) follow(from, to storage.UserID) storage.Edge {
	return storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: w.tick()}
}

func (w *world) unfollow(from, to storage.UserID) storage.Edge {
	return storage.Edge{From: from, To: to, Type: storage.None, UpdateTime: w.tick()}
}

// rows reads a whole table of edges, over all shards.
func (w *world) rows(side storage.Side) (map[storage.Edge]bool, error) {
	rows := map[storage.Edge]bool{}
	post := "0"
	if side.HasItem() {
		post = side.Item()
	}
	err := w.each(`SELECT from_user_id, to_user_id, type, update_time, `+post+` FROM `+side.String(), func(r *sql.Rows) error {
		var e storage.Edge
		if err := r.Scan(&e.From, &e.To, &e.Type, &e.UpdateTime, &e.Item); err != nil {
			return err
		}
		rows[e] = true
		return nil
	})
	return rows, err
}

// edge reads one row.
func (w *world) edge(t testing.TB, side storage.Side, from, to storage.UserID) storage.Edge {
	t.Helper()
	r := storage.EdgeLookups[side].Read(context.Background(), w.store, storage.Pair{From: from, To: to})[0]
	must.That(t, r.Err == nil && r.Found, "%d→%d: %+v", from, to, r)
	return r.Value
}

// checkpoints returns everything that is saved.
func (w *world) checkpoints(t testing.TB) string {
	t.Helper()
	text := ""
	err := w.each(`SELECT value FROM kith_checkpoints ORDER BY name`, func(r *sql.Rows) error {
		var value string
		err := r.Scan(&value)
		text += value + "\n"
		return err
	})
	must.OK(t, err)
	return text
}

// each runs a query on every shard.
func (w *world) each(query string, row func(*sql.Rows) error) error {
	for _, dsn := range w.dsns {
		db, err := w.pool(dsn)
		if err != nil {
			return err
		}
		rows, err := db.Query(query)
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := row(rows); err != nil {
				return err
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// pool is for reading. It keeps a connection while it is not used, and notices if that connection has ended.
func (w *world) pool(dsn string) (*sql.DB, error) {
	if db, ok := w.pools.Load(dsn); ok {
		return db.(*sql.DB), nil
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(1)
	if other, ok := w.pools.LoadOrStore(dsn, db); ok {
		return other.(*sql.DB), db.Close()
	}
	return db, nil
}

func (w *world) close() {
	w.pools.Range(func(_, db any) bool { _ = db.(*sql.DB).Close(); return true })
}

// settle waits until the two sides and the counts agree.
func (w *world) settle(t testing.TB) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(w.log)
		}
	}()
	must.OKSoon(t, w.agrees)
}

// exec runs a statement on one shard.
func (w *world) exec(t testing.TB, shard int, statements ...string) {
	t.Helper()
	db, err := sql.Open("mysql", w.dsns[shard])
	must.OK(t, err)
	defer db.Close()
	conn, err := db.Conn(context.Background())
	must.OK(t, err)
	defer conn.Close()
	for _, s := range statements {
		_, err := conn.ExecContext(context.Background(), s)
		must.That(t, err == nil, "%s: %v", s, err)
	}
}

// find returns the first shard on which a query returns a row.
func (w *world) find(t testing.TB, query string) int {
	t.Helper()
	for i := range w.dsns {
		found := false
		one := &world{dsns: w.dsns[i : i+1]}
		defer one.close()
		must.OK(t, one.each(query, func(*sql.Rows) error { found = true; return nil }))
		if found {
			return i
		}
	}
	t.Fatalf("nowhere: %s", query)
	return 0
}

// databaseOf returns the database's name in a DSN.
func databaseOf(t testing.TB, dsn string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	must.OK(t, err)
	return cfg.DBName
}

func TestMain(m *testing.M) {
	if dsns := os.Getenv(childVariable); dsns != "" {
		os.Exit(replicate(strings.Split(dsns, ";")))
	}
	testenv.Main(m)
}
