package sqlstore_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// TestLongGrowToFour measures how a store of 20,000 users and 400,000 follows in one database of
// MariaDB becomes one of four databases on two servers, under 500 writes and 500 reads a second. It
// reports how long writes and reads take before, during and after, and how long writes wait at each switch.
//
//	KITH_TEST_LONG=1 KITH_TEST_MAX_LOAD=0.2 go test ./storage/sqlstore -run TestLongGrowToFour -v
func TestLongGrowToFour(t *testing.T) {
	testenv.Long(t)
	testenv.NotOn(t, "a store on TiDB is one shard", "tidb")
	const users = 20_000
	load := 0.5
	if text := os.Getenv("KITH_TEST_MAX_LOAD"); text != "" {
		var err error
		load, err = strconv.ParseFloat(text, 64)
		must.OK(t, err)
	}
	servers := testenv.SharedMariaDB(t, 2)
	dsns := servers.FreshDatabases(t, 2)
	g := newGrower(t, "mysql:"+dsns[0], "", users)
	g.preload(20)
	ctx := t.Context()
	using, stop := context.WithCancel(ctx)
	traffic := g.traffic(using, 500)
	defer traffic.running.Wait()
	defer stop()

	traffic.rest()
	time.Sleep(10 * time.Second) // the measurement before the moves
	before := traffic.rest()
	t.Logf("before: %s", before)
	moved := latencies{}
	for _, plan := range []struct {
		address string
		buckets storage.BucketRange
		from    int
	}{{dsns[2], storage.BucketRange{First: 512, Last: 1023}, 0}, {dsns[1], storage.BucketRange{First: 256, Last: 511}, 0}, {dsns[3], storage.BucketRange{First: 768, Last: 1023}, 1}} {
		to, err := g.mover.AddShard(ctx, plan.address)
		must.OK(t, err)
		report, err := g.mover.Move(ctx, sqlstore.Move{Buckets: plan.buckets, From: plan.from, To: to},
			sqlstore.MoveConfig{Token: strconv.Itoa(to), Keep: 2 * time.Second, Load: sleep.Throttle{Load: load}})
		must.OK(t, err)
		during := traffic.rest()
		moved.add(during)
		t.Logf("%v: %d rows and %d again in %s, writes waited for %s; %s", report.Plan, report.Rows, report.Again, report.Took.Round(time.Millisecond), report.Waited.Round(time.Millisecond), during)
		check.That(t, report.Waited <= time.Second, "writes to the buckets waited for %s, more than a second", report.Waited)
		check.That(t, report.Repaired == 0, "%d rows had been written without a note", report.Repaired)
	}
	time.Sleep(10 * time.Second) // the measurement after the moves
	t.Logf("during all moves: %s", moved)
	t.Logf("after: %s", traffic.rest())
	stop()
	traffic.running.Wait()
	g.check()
}

// preload gives every user a number of follows on both sides.
func (g *grower) preload(degree int) {
	r := rand.New(rand.NewPCG(1, 1))
	var edges []storage.Edge
	for from := 1; from <= g.users; from++ {
		for range degree {
			if to := 1 + r.IntN(g.users); to != from {
				edges = append(edges, storage.Edge{From: storage.UserID(from), To: storage.UserID(to), Type: storage.Following, UpdateTime: 1})
			}
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for some := range slices.Chunk(edges, 5000) {
			must.All(g.t, g.mover.Apply(g.t.Context(), side, some, storage.IfAbsent))
		}
	}
}

// latencies are how long writes and reads took.
type latencies struct{ writes, reads []time.Duration }

func (l *latencies) add(more latencies) {
	l.writes, l.reads = append(l.writes, more.writes...), append(l.reads, more.reads...)
}

func (l latencies) String() string {
	of := func(what string, list []time.Duration) string {
		slices.Sort(list)
		at := func(share float64) string {
			if len(list) == 0 {
				return "-"
			}
			return list[int(share*float64(len(list)-1))].Round(10 * time.Microsecond).String()
		}
		return strconv.Itoa(len(list)) + " " + what + " p50 " + at(.5) + " p99 " + at(.99) + " most " + at(1)
	}
	return of("writes", l.writes) + ", " + of("reads", l.reads)
}

// traffic is load at a fixed rate, through two programs.
type traffic struct {
	running *sync.WaitGroup
	mu      sync.Mutex
	seen    latencies
}

// rest returns what has been measured since the last call.
func (u *traffic) rest() latencies {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = latencies{}
	return seen
}

// traffic writes and reads at a rate per second until the context ends.
func (g *grower) traffic(ctx context.Context, rate int) *traffic {
	u := &traffic{running: &sync.WaitGroup{}}
	const workers = 32
	begin := time.Now()
	for i := range workers {
		s := g.writers[i%len(g.writers)]
		if i < len(g.writers) {
			u.running.Go(func() { s.Watch(ctx) })
		}
		u.running.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for n := 0; ctx.Err() == nil; n++ {
				due := begin.Add(time.Duration(n*workers+i) * time.Second / time.Duration(rate))
				time.Sleep(time.Until(due)) // an open loop: if an operation waits, the following ones are late
				from, to := storage.UserID(1+r.IntN(g.users)), storage.UserID(1+r.IntN(g.users))
				if from == to || int(from)%workers != i {
					from = storage.UserID((int(from)-1)/workers*workers + i + 1) // each pair has one writer
				}
				if from == to || int(from) > g.users {
					continue
				}
				g.one(s, r, from, to)
				wrote := time.Since(due)
				began := time.Now()
				for _, res := range storage.UserLookups.Read(ctx, s, to) {
					check.That(g.t, res.Err == nil || ctx.Err() != nil, "%v", res.Err)
				}
				storage.EdgeLookups[storage.Inverse].Read(ctx, s, storage.Pair{From: from, To: to})
				u.mu.Lock()
				u.seen.add(latencies{[]time.Duration{wrote}, []time.Duration{time.Since(began)}})
				u.mu.Unlock()
			}
		})
	}
	return u
}
