package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sqlstore"
)

// watched is a store whose logs are read, with a list of inverse rows that get lost.
type watched struct {
	*sqlstore.Store
	logs  []replication.Log
	clock atomic.Int64

	// inverse writes a forward row to the inverse side, unless the row is to be lost.
	inverse func(t testing.TB, row storage.Row)

	mu   sync.Mutex
	lose map[storage.Row]bool // of the forward side
	lost int
}

// Apply implements [storage.EdgeWriter], and loses the rows that are to be lost.
func (w *watched) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	if !side.IsInverse() {
		return w.Store.Apply(ctx, side, edges, rule)
	}
	w.mu.Lock()
	results := make([]storage.Result[storage.Changed], len(edges))
	var rows []storage.Edge
	var at []int
	for i, e := range edges {
		results[i] = storage.Result[storage.Changed]{Value: storage.Changed{Row: e}, Found: true}
		if row := (storage.Row{Side: side.Truth(), Edge: e}); w.lose[row] {
			w.lost++
			delete(w.lose, row)
			continue
		}
		rows, at = append(rows, e), append(at, i)
	}
	w.mu.Unlock()
	for i, r := range w.Store.Apply(ctx, side, rows, rule) {
		results[at[i]] = r
	}
	return results
}

func (w *watched) openLogs(t testing.TB) {
	t.Helper()
	logs, closing, err := binlog.OpenLogs(t.Context(), w.Store, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(closing)
	w.logs = logs
}

// onSQLite is a store of two files, in the mode sync.
func onSQLite(t testing.TB) *watched {
	t.Helper()
	dir := t.TempDir()
	w := &watched{Store: openStore(t, "sqlite:"+filepath.Join(dir, "a.db")+";"+filepath.Join(dir, "b.db")), lose: map[storage.Row]bool{}}
	w.openLogs(t)
	w.inverse = func(t testing.TB, row storage.Row) { applied(t, w, row.Side.Replica(), []storage.Edge{row.Edge}) }
	return w
}

// onMariaDB is a store of two servers with two databases each, in the mode binlog.
func onMariaDB(t testing.TB) *watched {
	t.Helper()
	testenv.NeedsBinlog(t)
	return onServers(t, testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2))
}

// onServers is a store of databases on two servers, in the mode binlog.
func onServers(t testing.TB, dsns []string) *watched {
	t.Helper()
	w := &watched{Store: openStore(t, "mysql:"+strings.Join(dsns, ";")), lose: map[storage.Row]bool{}}
	w.openLogs(t)
	w.inverse = func(testing.TB, storage.Row) {} // replication does this

	logger := slog.New(slog.DiscardHandler)
	applier := replication.New(replication.Config{Store: w, Shards: w.Shards(), Publisher: nobody{}, Logger: logger})
	replicator := binlog.New(binlog.Config{DSNs: dsns, Applier: applier, Store: w.Store, Checkpoints: w.Store, Logger: logger})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { applier.Run(ctx) })
	running.Go(func() { _ = replicator.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	must.OKSoon(t, func() error {
		for _, s := range replicator.Status() {
			if s.State != binlog.Tailing {
				return fmt.Errorf("%+v", s)
			}
		}
		if len(replicator.Status()) != 2 {
			return errors.New("not two servers yet")
		}
		return nil
	})
	return w
}

type nobody struct{}

func (nobody) Publish(context.Context, []storage.Row) {}

func openStore(t testing.TB, location string) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: location})
}

func onEach(t *testing.T, test func(t *testing.T, w *watched)) {
	t.Run("SQLite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, onMariaDB(t)) })
}

func applied(t testing.TB, w storage.EdgeWriter, side storage.Side, rows []storage.Edge) {
	t.Helper()
	must.All(t, w.Apply(context.Background(), side, rows, storage.IfNewer))
}

// follow makes an edge at the present time.
func (w *watched) follow(t testing.TB, from, to storage.UserID, lose bool) storage.Edge {
	t.Helper()
	return w.write(t, storage.Forward, storage.Edge{From: from, To: to, Type: storage.Following}, lose)
}

// write writes an edge of the present time to a pair of tables.
func (w *watched) write(t testing.TB, side storage.Side, e storage.Edge, lose bool) storage.Edge {
	t.Helper()
	e.UpdateTime = storage.Micros(w.clock.Add(1) + time.Now().UnixMicro())
	row := storage.Row{Side: side, Edge: e}
	if lose {
		w.mu.Lock()
		w.lose[row] = true
		w.mu.Unlock()
	}
	applied(t, w, side, []storage.Edge{e})
	w.inverse(t, row)
	return e
}

// writeSome makes n edges, every third of them a request. Each hundredth edge is lost on the inverse
// side; writeSome returns the lost ones.
func (w *watched) writeSome(t testing.TB, r *rand.Rand, n int) []storage.Row {
	t.Helper()
	var lost []storage.Row
	offset := storage.UserID(w.clock.Load())
	for i := range n {
		from, to := storage.UserID(r.IntN(50)+1), 1000+offset+storage.UserID(i)
		side, lose := storage.Forward, i%100 == 37
		e := storage.Edge{From: from, To: to, Type: storage.Following}
		switch i % 3 { // so that the lost rows are of all tables, too
		case 1:
			side = storage.Requests
		case 2:
			side, e.To, e.Item = storage.Favorites, 1000+to%2, int64(to)
		}
		if e := w.write(t, side, e, lose); lose {
			lost = append(lost, storage.Row{Side: side, Edge: e})
		}
	}
	return lost
}

// arrived waits until the inverse side has all the rows that it gets without a repair.
func (w *watched) arrived(t testing.TB, lost int) {
	t.Helper()
	must.OKSoon(t, func() error {
		if n := len(w.differences(t)); n != lost {
			return fmt.Errorf("%d edges differ, %d do for good", n, lost)
		}
		return nil
	})
}

// differences returns the differences of all rows of the users that these tests make.
func (w *watched) differences(t testing.TB) []reconcile.Finding {
	t.Helper()
	var keys []reconcile.Key
	for _, side := range []storage.Side{storage.Forward, storage.Requests} {
		for from := storage.UserID(1); from <= 50; from++ {
			r := storage.NeighbourLookups[side].Read(t.Context(), w, from)[0]
			must.OK(t, r.Err)
			for _, to := range r.Value {
				keys = append(keys, reconcile.Key{Side: side, Pair: storage.Pair{From: from, To: to}})
			}
		}
	}
	for from := storage.UserID(1); from <= 50; from++ {
		r := storage.RowLookups.Read(t.Context(), w, storage.RowsQuery{Side: storage.Favorites, Owner: from, Limit: 1e6})[0]
		must.OK(t, r.Err)
		for _, e := range r.Value {
			keys = append(keys, reconcile.Key{Side: storage.Favorites, Pair: e.Pair()})
		}
	}
	found, err := reconcile.Differences(t.Context(), w.Store, keys)
	must.OK(t, err)
	return found
}

const window = 300 * time.Millisecond

func (w *watched) config(change func(*reconcile.ChangesConfig)) reconcile.ChangesConfig {
	cfg := reconcile.ChangesConfig{
		Store: w.Store, Logs: w.logs, Checkpoints: w.Store,
		Window: window, Repair: true, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// incremental runs the incremental mode once.
func (w *watched) incremental(t testing.TB, change func(*reconcile.ChangesConfig)) reconcile.IncrementalReport {
	t.Helper()
	report, err := reconcile.Incremental(t.Context(), w.config(change))
	must.OK(t, err)
	return report
}

func dryRun(cfg *reconcile.ChangesConfig) { cfg.Repair = false }

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
