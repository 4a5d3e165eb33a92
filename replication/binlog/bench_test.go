package binlog_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
)

// counter is a publisher that counts edges, and notes when they were written.
type counter struct {
	edges   atomic.Int64
	mu      sync.Mutex
	there   map[storage.Edge]time.Time
	written map[storage.Edge]time.Time // when their writers had the answer to the commit
}

func newCounter() *counter {
	return &counter{there: map[storage.Edge]time.Time{}, written: map[storage.Edge]time.Time{}}
}

func (c *counter) Publish(_ context.Context, rows []storage.Row) {
	now := time.Now()
	c.mu.Lock()
	for _, r := range rows {
		c.there[r.Edge] = now
	}
	c.mu.Unlock()
	c.edges.Add(int64(len(rows)))
}

// wrote notes that an edge has been written.
func (c *counter) wrote(e storage.Edge) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[e] = now
}

// report reports how late edges were, after their writer read the clock and after it had the answer
// to the commit.
func (c *counter) report(b *testing.B) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var clock, commit []time.Duration
	for e, at := range c.written {
		clock = append(clock, c.there[e].Sub(e.UpdateTime.Time()))
		commit = append(commit, max(0, c.there[e].Sub(at)))
	}
	for name, list := range map[string][]time.Duration{"clock": clock, "commit": commit} {
		slices.Sort(list)
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
			b.ReportMetric(float64(list[int(q.at*float64(len(list)-1))].Microseconds())/1000, q.name+"-ms-from-"+name)
		}
	}
}

// benchStore has two servers with two databases each. KITH_BENCH_DURABLE=1 makes every commit wait for
// the disk. Otherwise commits survive a crash of the server, but not of the machine.
func benchStore(b *testing.B) *world {
	options := []string{"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"}
	if os.Getenv("KITH_BENCH_DURABLE") == "1" {
		options = []string{"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}
	}
	b.Logf("flush settings: %v", options)
	var dsns []string
	for range 2 {
		server := testenv.MariaDB(b, options...)
		dsns = append(dsns, server.CreateDatabase(b, "kith_a"), server.CreateDatabase(b, "kith_b"))
	}
	return worldOn(b, dsns...)
}

func (w *world) benchReplicator(b *testing.B, c *counter) *running {
	return w.replicate(b, func(cfg *binlog.Config) {
		cfg.Applier = replication.New(replication.Config{Store: w.store, Shards: len(w.dsns), Publisher: c})
		ctx, cancel := context.WithCancel(context.Background())
		b.Cleanup(cancel)
		go cfg.Applier.Run(ctx)
	})
}

// BenchmarkDrain measures events/s for a backlog of single follows, one transaction each, while
// 200 follows/s arrive.
func BenchmarkDrain(b *testing.B) {
	backlog := 100_000
	if n, err := strconv.Atoi(os.Getenv("KITH_BENCH_BACKLOG")); err == nil {
		backlog = n
	}
	for range b.N {
		w := benchStore(b)
		c := newCounter()
		w.settleIn(b)
		r := w.benchReplicator(b, c)
		r.await(b, binlog.Tailing)
		w.write(b, w.follow(1, 2))
		w.settle(b)
		r.stop(b)

		began := time.Now()
		var writers sync.WaitGroup
		for k := range 16 {
			writers.Go(func() {
				for i := k; i < backlog; i += 16 {
					from := 1 + i*7919%people
					to := 1 + (from*31+i/people*1009)%people // each pair once
					err := w.tryWrite(w.follow(storage.UserID(from), storage.UserID(to)))
					check.That(b, err == nil, "%v", err)
				}
			})
		}
		writers.Wait()
		b.Logf("wrote %d follows at %.0f/s", backlog, float64(backlog)/time.Since(began).Seconds())

		steady, cancel := context.WithCancel(context.Background())
		writers.Go(func() { w.steadily(b, steady, 200, c) })
		c.edges.Store(0)
		began = time.Now()
		r = w.benchReplicator(b, c)
		must.OKSoon(b, func() error {
			if int(c.edges.Load()) < backlog {
				return errNotYet
			}
			return nil
		})
		b.ReportMetric(float64(c.edges.Load())/time.Since(began).Seconds(), "events/s")
		cancel()
		writers.Wait()
		w.settle(b)
		r.stop(b)
	}
}

// people is the number of users.
const people = 50_000

// settleIn makes the users.
func (w *world) settleIn(b *testing.B) {
	var users []storage.User
	for id := storage.UserID(1); id <= people; id++ {
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), CreatedAt: 1, UpdatedAt: 1})
	}
	for chunk := range slices.Chunk(users, 5000) {
		must.All(b, w.store.CreateUsers(context.Background(), chunk))
	}
}

// steadily makes follows at a rate until the context ends.
func (w *world) steadily(b *testing.B, ctx context.Context, rate int, c *counter) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var writers sync.WaitGroup
	defer writers.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			writers.Go(func() {
				e := w.follow(storage.UserID(1+rand.IntN(people)), storage.UserID(1+rand.IntN(people)))
				err := w.tryWrite(e)
				check.That(b, err == nil, "%v", err)
				c.wrote(e)
			})
		}
	}
}

// BenchmarkLag measures how late a follow reaches the inverse side under a steady
// 500 follows/s.
func BenchmarkLag(b *testing.B) {
	for range b.N {
		w := benchStore(b)
		c := newCounter()
		w.settleIn(b)
		r := w.benchReplicator(b, c)
		r.await(b, binlog.Tailing)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		w.steadily(b, ctx, 500, c)
		cancel()
		w.settle(b)
		b.ReportMetric(float64(c.edges.Load())/20, "follows/s")
		c.report(b)
		r.stop(b)
	}
}
