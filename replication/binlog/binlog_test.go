package binlog_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
)

func TestFollowsReachTheInverseSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)

	var all []storage.Edge
	for from := storage.UserID(1); from <= 20; from++ {
		for to := storage.UserID(1); to <= 20; to++ {
			if from != to {
				all = append(all, w.follow(from, to))
			}
		}
	}
	w.write(t, all...)
	w.settle(t)
	gone := w.unfollow(3, 4)
	block := storage.Edge{From: 5, To: 6, Type: storage.Blocking, UpdateTime: w.tick()}
	w.write(t, gone, block)
	w.settle(t)
	must.OKSoon(t, func() error {
		if !r.published(gone) || !r.published(block) || !r.saw(3, storage.Beside) {
			return errNotYet
		}
		return nil
	})
	must.OKSoon(t, func() error { // the rows exist a moment before they are acknowledged
		if s := r.applier.Status(); s.Lag != 0 || s.Pending != 0 || s.Err() != nil {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

func TestGoesOnFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, w.follow(1, 2), w.follow(2, 1))
	r := w.replicate(t)
	w.settle(t) // by the copy
	w.write(t, w.follow(1, 3), w.follow(3, 1))
	w.settle(t) // by the binlog
	r.stop(t)

	w.write(t, w.follow(1, 4), w.follow(4, 1), w.unfollow(1, 2))
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	w.settle(t)
	n := strings.Count(w.log.String(), "copying all edges")
	check.That(t, n == 2, "following was copied %d times:\n%s", n, w.log) // once for each server
	check.That(t, !r.published(w.edge(t, storage.Forward, 2, 1)), "what was applied long ago was applied again")
}

func TestCopySurvivesKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, w.many(30_000)...)
	for range 4 {
		p := w.launch(t)
		time.Sleep(rand.N(700 * time.Millisecond))
		p.Kill()
	}
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.settle(t)
}

// many returns follows by 300 users.
func (w *world) many(n storage.UserID) (edges []storage.Edge) {
	for i := range n {
		edges = append(edges, w.follow(1+i%300, 1000+i))
	}
	return edges
}

// slow is a store whose writes take their time.
type slow struct{ storage.EdgeWriter }

func (s slow) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	time.Sleep(200 * time.Millisecond)
	return s.EdgeWriter.Apply(ctx, side, edges, rule)
}

func TestCopyGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	w, _ := newPrivateWorld(t)
	w.write(t, w.many(30_000)...)
	r := w.replicateTo(t, slow{w.store})
	var saved struct {
		Databases []string
		Copy      *struct {
			Database int
			From     storage.UserID
		}
	}
	must.OKSoon(t, func() error {
		text := w.checkpoints(t)
		if text == "" {
			return errNotYet
		}
		if err := json.Unmarshal([]byte(text), &saved); err != nil {
			return err
		}
		if saved.Copy == nil || saved.Copy.From < 2 {
			return errNotYet
		}
		return nil
	})
	r.stop(t)
	must.That(t, w.agrees() != nil, "the copy was complete before it was stopped")

	// Rows that have been copied are not read again. A row that is lost after that, without a trace in
	// the binlog, stays lost.
	database := saved.Databases[0]
	shard := slices.IndexFunc(w.dsns, func(dsn string) bool { return databaseOf(t, dsn) == database })
	var lost storage.Edge
	one := &world{dsns: w.dsns[shard : shard+1]}
	defer one.close()
	err := one.each(
		`SELECT from_user_id, to_user_id, type, update_time FROM following ORDER BY from_user_id, to_user_id LIMIT 1`,
		func(r *sql.Rows) error { return r.Scan(&lost.From, &lost.To, &lost.Type, &lost.UpdateTime) })
	must.OK(t, err)
	for i := range w.dsns {
		w.exec(t, i, "SET SESSION sql_log_bin = 0", fmt.Sprintf("DELETE FROM follower WHERE to_user_id = %d AND from_user_id = %d", lost.To, lost.From))
	}
	// Whoever was killed may have written another side, of a row that is copied later, and not have reported it.
	inverse, err := w.rows(storage.Inverse)
	must.OK(t, err)
	forward, err := w.rows(storage.Forward)
	must.OK(t, err)
	var unreported storage.Edge
	for e := range forward {
		if !inverse[e] {
			unreported = e
		}
	}
	must.OK(t, w.store.Apply(t.Context(), storage.Inverse, []storage.Edge{unreported}, storage.IfNewer)[0].Err)
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	check.That(t, r.published(unreported) || r.sawGap(), "nobody is told of %+v", unreported)
	inverse, err = w.rows(storage.Inverse)
	must.OK(t, err)
	for e := range forward {
		must.That(t, e == lost || inverse[e], "%+v is missing", e)
	}
	check.That(t, !inverse[lost], "the copy began anew")
}

func TestAnotherTakesOver(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*process){
		"killed": func(p *process) { p.Kill() },
		"frozen": func(p *process) { _ = p.Signal(syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.launch(t)
			w.write(t, w.follow(1, 2), w.follow(2, 1))
			w.settle(t)
			second := w.replicate(t)
			second.awaitSome(t, binlog.Waiting)
			w.write(t, w.follow(1, 3), w.follow(3, 1))
			w.settle(t)
			// On a machine so busy that the first is silent for seconds, it has lost the lock of one server.
			second.awaitSome(t, binlog.Waiting)

			end(first)
			began := time.Now()
			w.write(t, w.follow(1, 4), w.follow(4, 1))
			w.settle(t)
			second.await(t, binlog.Tailing)
			check.Most(t, "another took over after", time.Since(began), 10*time.Second)
		})
	}
}

// lastSave are checkpoints that are saved once more, when the context of their replicator has ended.
type lastSave struct {
	storage.Checkpoints
	quiet  atomic.Bool   // nothing is saved before the end
	end    chan struct{} // it has come
	saving func()        // called before the last one is saved
}

func (s *lastSave) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	if s.quiet.Load() {
		select {
		case <-s.end:
			s.saving()
		default:
			return errNotYet
		}
	}
	return s.Checkpoints.SaveCheckpoint(ctx, name, value)
}

// A replicator that is told to end while it asks whether it has the lock keeps the lock until its last checkpoint is saved: who
// takes over begins where it ended.
func TestWhoTakesOverFindsTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	link, direct := testenv.NewLink(t, server.Addr()), w.dsns
	last := &lastSave{Checkpoints: w.store, end: make(chan struct{})}
	w.dsns = storage.Each(direct, func(dsn string) string { return strings.Replace(dsn, server.Addr(), link.Addr, 1) })
	first := w.replicate(t, func(c *binlog.Config) { c.Checkpoints = last })
	w.dsns = direct
	first.await(t, binlog.Tailing)
	second := w.replicate(t)
	second.await(t, binlog.Waiting)
	last.quiet.Store(true)
	w.write(t, w.follow(1, 2))
	w.settle(t)

	pass := link.Silence()
	last.saving = func() {
		pass()
		for began := time.Now(); time.Since(began) < time.Second; time.Sleep(10 * time.Millisecond) {
			if s := second.binlog.Status()[0]; s.State != binlog.Waiting {
				t.Errorf("another one works on the server before the checkpoint is saved: %+v", s)
				return
			}
		}
	}
	time.Sleep(2 * time.Second) // it asks every second, and is not answered
	close(last.end)
	first.stop(t)
	second.await(t, binlog.Tailing)
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testenv.MariaDBServer, testing.TB){
		"stopped": func(s *testenv.MariaDBServer, t testing.TB) { s.Stop(t) },
		"killed":  func(s *testenv.MariaDBServer, t testing.TB) { s.Kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := newPrivateWorld(t)
			r := w.replicate(t)
			r.await(t, binlog.Tailing)
			w.write(t, w.follow(1, 2), w.follow(2, 1))
			w.settle(t)
			for i := range storage.UserID(3) {
				w.write(t, w.follow(10+i, 2), w.follow(2, 10+i))
				end(server, t)
				server.Restart(t)
				must.OKSoon(t, func() error { return w.tryWrite(w.follow(20+i, 2), w.follow(2, 20+i)) })
				w.settle(t)
			}
			n := strings.Count(w.log.String(), "copying all edges")
			check.That(t, n == 1, "following was copied %d times:\n%s", n, w.log)
		})
	}
}

func TestRotationAndPurge(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	for i := range storage.UserID(5) {
		w.write(t, w.follow(1, 10+i), w.follow(10+i, 1))
		server.Exec(t, "FLUSH BINARY LOGS")
		w.write(t, w.follow(2, 10+i), w.follow(10+i, 2))
	}
	w.settle(t)

	// The purged transactions have been applied, and the checkpoint says so even without new writes, so
	// nothing is missing.
	server.Exec(t, "FLUSH BINARY LOGS")
	saved := w.checkpoints(t)
	must.OKSoon(t, func() error {
		if w.checkpoints(t) == saved {
			return errNotYet
		}
		return nil
	})
	r.stop(t)
	purge(t, server)
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(3, 4))
	w.settle(t)
	n := strings.Count(w.log.String(), "copying all edges")
	check.That(t, n == 1, "following was copied %d times:\n%s", n, w.log)
	r.stop(t)

	// The purged part of the log has not been applied.
	w.write(t, w.follow(5, 6), w.follow(6, 5))
	server.Exec(t, "FLUSH BINARY LOGS")
	purge(t, server)
	w.write(t, w.follow(7, 8))
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	w.settle(t)
	check.That(t, r.sawGap(), "caches were not notified of the gap")
}

// purge removes all binlogs but the newest.
func purge(t *testing.T, server *testenv.MariaDBServer) {
	t.Helper()
	all := binlogs(t, server)
	newest := all[len(all)-1]
	must.OKSoon(t, func() error { // a log that is being read is not removed
		server.Exec(t, "PURGE BINARY LOGS TO '"+newest+"'")
		if left := binlogs(t, server); left[0] != newest {
			return fmt.Errorf("the binlogs are %v", left)
		}
		return nil
	})
}

// binlogs returns the names of a server's files, the oldest first.
func binlogs(t *testing.T, server *testenv.MariaDBServer) (names []string) {
	t.Helper()
	rows, err := server.Open(t, "").Query("SHOW BINARY LOGS")
	must.OK(t, err)
	defer rows.Close()
	columns, err := rows.Columns() // MySQL has one more column
	must.OK(t, err)
	var name string
	into := []any{&name}
	for range columns[1:] {
		into = append(into, new(any))
	}
	for rows.Next() {
		must.OK(t, rows.Scan(into...))
		names = append(names, name)
	}
	must.OK(t, rows.Err())
	return names
}

func TestServerIsReset(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopped bool // during the reset
		rows    int  // the number of rows written after it
	}{
		"running, little is written":      {false, 1},
		"running, more is written":        {false, 300},
		"stopped, nothing is written":     {true, 0},
		"stopped, little is written":      {true, 3},
		"stopped, more than was there is": {true, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := newPrivateWorld(t)
			r := w.replicate(t)
			r.await(t, binlog.Tailing)
			for i := range storage.UserID(20) {
				w.write(t, w.follow(1, 10+i))
			}
			w.settle(t)
			if test.stopped {
				r.stop(t)
				w.write(t, w.follow(1, 100), w.follow(100, 1)) // the reset removes these rows
			}
			server.ResetBinlog(t)
			for i := range storage.UserID(test.rows) {
				w.write(t, w.follow(1000+i, 2))
			}
			if test.stopped {
				r = w.replicate(t)
				r.await(t, binlog.Tailing)
			}
			w.settle(t)
			w.write(t, w.follow(7, 8))
			w.settle(t)
			n := strings.Count(w.log.String(), "copying all edges")
			check.That(t, n == 2, "following was copied %d times:\n%s", n, w.log)
		})
	}
}

func TestServerFreezes(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2))
	w.settle(t)
	server.Freeze(t)
	must.OKSoon(t, func() error { // longer than the connection that holds the lock may be idle
		if s := r.applier.Status(); s.Lag < 8*time.Second || r.binlog.Status()[0].State == binlog.Tailing {
			return fmt.Errorf("lag %s", s.Lag)
		}
		return nil
	})
	server.Thaw(t)
	r.await(t, binlog.Tailing)
	must.OKSoon(t, func() error { return w.tryWrite(w.follow(2, 1)) })
	w.settle(t)
	must.OKSoon(t, func() error {
		if lag := r.applier.Status().Lag; lag > 0 {
			return fmt.Errorf("lag %s", lag)
		}
		return nil
	})
}
