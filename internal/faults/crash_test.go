package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
)

// TestCrashes is the short schedule; see [TestLongCrashes].
func TestCrashes(t *testing.T) {
	t.Parallel()
	crashes(t, []string{"sync"}, schedule{operations: 350, connections: 16, users: 500, replicatorKills: 2, gatewayKills: 1, serverKills: 2, redisKills: 1, pauses: 1, neighbours: 1, window: time.Second})
}

// TestLongCrashes writes and publishes through two gateways from 18 connections, while replicators,
// gateways, a MariaDB server and Redis are killed and started again, processes stand still for longer than
// their leases, and neighbours write more than a slow link takes at once. The clocks of the processes differ by 50 s. Then it
// measures how long it takes to repair the differences. It does all this once more while the realtime mode runs.
//
//	KITH_TEST_LONG=1 KITH_TEST_SEED=… go test ./internal/faults -run TestLongCrashes/binlog -v
func TestLongCrashes(t *testing.T) {
	testenv.Long(t)
	crashes(t, []string{"sync", "stream"}, schedule{operations: 20_000, connections: 16, users: 500, replicatorKills: 12, gatewayKills: 6, serverKills: 2, redisKills: 2, pauses: 6, neighbours: 3, skewed: true, window: reconcile.DefaultWindow})
}

// crashes runs a schedule in the redundancy modes that are not simulated, and in some with the realtime
// mode. (In the mode binlog the realtime mode has nothing to find.)
func crashes(t *testing.T, watched []string, s schedule) {
	for _, mode := range notSimulated() {
		t.Run(mode, func(t *testing.T) { t.Parallel(); s.run(t, mode, false) })
	}
	for _, mode := range watched {
		t.Run(mode+" with realtime", func(t *testing.T) { t.Parallel(); testenv.NeedsBinlog(t); s.run(t, mode, true) })
	}
}

// schedule is how much is written, and what is killed during that.
type schedule struct {
	operations, connections, users                         int
	replicatorKills, gatewayKills, serverKills, redisKills int
	pauses, neighbours                                     int
	skewed                                                 bool          // the clocks of processes differ
	window                                                 time.Duration // of the modes that reconcile
}

// running is a schedule that runs.
type running struct {
	schedule
	*deployment
	seed uint64

	done    atomic.Int64 // operations
	calm    atomic.Bool  // a server is down: write slowly, and no follows, because most would be refused
	slow    atomic.Bool  // a process stands still: write slowly, or everything is written before it goes on
	mu      sync.Mutex
	results []result
	outages []outage // of servers, and of processes that stood still and may have held locks
}

// outage is a time in which operations may fail on any gateway.
type outage struct{ from, to time.Time }

// run runs the schedule in a redundancy mode, with or without the realtime mode.
func (s schedule) run(t *testing.T, mode string, watched bool) {
	began := time.Now()
	r := &running{schedule: s, deployment: deployOn(t, ownServers(t), mode, s.users), seed: seedOf(t)}
	if testenv.HasBinlog() {
		r.reconcile(t, "incremental") // this run sets the beginning
	}
	r.linkSlowly(t)
	r.skewClocks(t)
	var w *watching
	if watched {
		w = r.watch(t, s.window)
	}
	faults := r.faults()
	publishers := r.publishers(t, 2, r.seed)
	wait := r.write(t)
	r.inject(t, faults)
	wait()
	publishers.end(t, r.deployment)
	written := time.Now()

	h := newHistory()
	for _, result := range r.results {
		must.OK(t, result.note(h))
	}
	r.failuresHaveReasons(t)
	r.quiet(t, h)
	r.feedsAreRight(t)
	r.allWell(t)
	settled := time.Now()
	if watched {
		w.settle(t)
	}
	found := r.tables(t)
	different := h.judge(t, found)
	r.countsAreExact(t)
	failed := h.explain(t, found, different)
	r.failuresAreCounted(t, failed)
	if mode == "binlog" && len(different) > 0 {
		t.Errorf("%d of %d edges differ, the first is %v: %+v in following, %+v in follower; %s", len(different), len(found.forward), different[0],
			found.forward[different[0]], found.inverse[different[0]], h.story(t, different[0]))
	}
	r.summarize(t, h, found, different, faults)
	t.Logf("started and written in %v, quiet %v later", written.Sub(began).Round(time.Millisecond), settled.Sub(written).Round(time.Millisecond))
	if !watched {
		r.repairTimes(t, found, different)
	}
}

// ownServers are two servers that no other test uses, because they are killed.
func ownServers(t testing.TB) testenv.Servers {
	t.Helper()
	servers := testenv.Servers{testenv.MariaDB(t), testenv.MariaDB(t)}
	for _, s := range servers {
		s.CommitInOneStep(t)
	}
	return servers
}

// seedOf is the seed of a test's random choices. KITH_TEST_SEED repeats a seed.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	n := rand.Uint64() % 1_000_000
	if text := os.Getenv("KITH_TEST_SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		must.OK(t, err)
	}
	t.Logf("KITH_TEST_SEED=%d", n)
	return n
}

// write starts the connections. The returned function waits until all operations are done.
func (r *running) write(t *testing.T) (wait func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var started atomic.Int64
	var writers sync.WaitGroup
	for i := range r.connections {
		c := r.client(t)
		random := rand.New(rand.NewPCG(r.seed, uint64(i)))
		writers.Go(func() {
			for ctx.Err() == nil && started.Add(1) <= int64(r.operations) {
				r.sendUntilDone(ctx, c, randomOperation(random, r.users, r.calm.Load()), random)
				r.done.Add(1)
			}
		})
	}
	t.Cleanup(func() { cancel(); writers.Wait() })
	return writers.Wait
}

// sendUntilDone sends an operation to one of the running gateways. An operation that is not
// answered is not sent again, because it may have been executed.
func (r *running) sendUntilDone(ctx context.Context, c *client, o operation, random *rand.Rand) {
	for ctx.Err() == nil {
		l := r.gateways[random.IntN(len(r.gateways))].now.Load()
		if l == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		result := o.send(ctx, c, l)
		if result.notSent() {
			time.Sleep(time.Millisecond)
			continue
		}
		r.mu.Lock()
		r.results = append(r.results, result)
		r.mu.Unlock()
		if r.calm.Load() {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		}
		if r.slow.Load() {
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		return
	}
}

// fault is a fault and its repair.
type fault struct {
	name   string
	hold   int64 // how many operations later it is repaired
	begin  func(testing.TB)
	repair func(testing.TB)
}

// faults returns the faults of the schedule, in random order.
func (r *running) faults() []fault {
	random := rand.New(rand.NewPCG(r.seed, 1<<32))
	step := int64(r.operations) / int64(r.replicatorKills+r.gatewayKills+r.serverKills+r.redisKills+r.pauses+r.neighbours+1)
	var list []fault
	add := func(times int, make func() fault) {
		for range times {
			f := make()
			f.hold = random.Int64N(step/2 + 1)
			list = append(list, f)
		}
	}
	of := func(nodes []*node) func() fault {
		return func() fault {
			n := nodes[random.IntN(len(nodes))]
			return fault{name: n.name, begin: n.kill, repair: n.start}
		}
	}
	working := r.replicators
	if len(working) == 0 {
		working = r.gateways // these gateways propagate rows themselves
	}
	add(r.replicatorKills, of(working))
	add(r.gatewayKills, of(r.gateways))
	next := 0
	add(r.serverKills-1, func() fault {
		s := r.servers[next%len(r.servers)]
		next++
		return r.serverFault(s, working)
	})
	add(r.redisKills, func() fault { return fault{name: "redis", begin: r.redis.Kill, repair: r.redis.Restart} })
	add(r.pauses, func() fault {
		nodes := r.nodes()
		return r.pause(nodes[random.IntN(len(nodes))], random)
	})
	if r.mode == "binlog" {
		add(r.neighbours, func() fault { return r.neighbour(r.servers[random.IntN(len(r.servers))]) })
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	// The last fault is that of the server that does not hold the checkpoints. It comes at the end,
	// so that no later write repairs its damage.
	return append(list, r.serverFault(r.servers[1], working))
}

// outageTime is how long a server is down before the processes that propagate rows are killed. It
// is longer than a replicator takes to save its progress.
const outageTime = 2200 * time.Millisecond

// serverFault kills a server. While the server is down, it kills the processes that propagate rows,
// with everything that they could not write to it.
func (r *running) serverFault(s *testenv.MariaDBServer, working []*node) fault {
	var from time.Time
	return fault{
		name: "mariadb",
		begin: func(t testing.TB) {
			r.calm.Store(true)
			from = time.Now()
			s.Kill(t)
		},
		repair: func(t testing.TB) {
			time.Sleep(time.Until(from.Add(outageTime)))
			for _, n := range working {
				n.kill(t)
			}
			s.Restart(t)
			r.outages = append(r.outages, outage{from, time.Now()})
			for _, n := range working {
				n.start(t)
			}
			r.calm.Store(false)
		},
	}
}

// inject causes one fault after the other, spread over the operations.
func (r *running) inject(t *testing.T, faults []fault) {
	t.Helper()
	step := int64(r.operations) / int64(len(faults)+1)
	for i, f := range faults {
		r.progress(t, step*int64(i+1))
		f.begin(t)
		r.progress(t, min(step*int64(i+1)+f.hold, int64(r.operations)))
		f.repair(t)
	}
	r.progress(t, int64(r.operations))
}

// progress waits until a number of operations is done. Meanwhile it supervises the processes.
func (r *running) progress(t *testing.T, operations int64) {
	t.Helper()
	last, since := r.done.Load(), time.Now()
	for r.done.Load() < operations {
		if n := r.done.Load(); n > last {
			last, since = n, time.Now()
		}
		must.That(t, time.Since(since) <= patience, "nothing was written for %s, after %d operations", patience, last)
		for _, n := range r.nodes() {
			n.supervise(t)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// recovery is how long operations may still fail after a server is back.
const recovery = 2 * time.Second

// failuresHaveReasons: an operation fails only if its gateway was killed, or a server was down.
func (r *running) failuresHaveReasons(t *testing.T) {
	t.Helper()
	answered := 0
	for _, one := range r.results {
		switch {
		case one.err == nil && one.code == "":
			answered++
		case one.err != nil && one.by.killed.Load():
		case one.err == nil && one.code != "INTERNAL_SERVER_ERROR" && r.away(one):
		default:
			t.Errorf("%v, asked of %s after %v: %v, %s %s, though nothing it needs was away", one.operation, one.by.name, one.ended.Sub(one.began), one.err, one.code, one.message)
		}
	}
	check.Least(t, "operations that went through", answered, r.operations/3)
}

// away reports whether a server was down at any time of the request.
func (r *running) away(one result) bool {
	for _, o := range r.outages {
		if one.ended.After(o.from) && one.began.Before(o.to.Add(recovery)) {
			return true
		}
	}
	return false
}

// failuresAreCounted compares the missing rows of each process that reported them with the number
// that this process has counted as left to reconcile. The counters of killed processes are lost.
func (r *running) failuresAreCounted(t *testing.T, failed map[*life]int) {
	t.Helper()
	counter := map[string]string{"sync": "kith_sync_inverse_dropped_total", "stream": "kith_stream_add_failed_edges_total"}[r.mode]
	for l, n := range failed {
		if l.killed.Load() || counter == "" {
			continue
		}
		counted := l.metric(t, counter, "")
		check.That(t, float64(n) <= counted, "%d edges are missing that %s was to propagate, which counts %v", n, l.name, counted)
	}
}

// summarize logs what happened.
func (r *running) summarize(t *testing.T, h *history, found tables, different []edge, faults []fault) {
	t.Helper()
	outcomes, kills := map[string]int{}, map[string]int{}
	for _, one := range r.results {
		outcome := "answered"
		switch {
		case one.err != nil:
			outcome = "no answer"
		case one.code != "" && one.done:
			outcome = "answered in part: " + one.code
		case one.code != "":
			outcome = one.code
		case one.stale:
			outcome = "answered, stale"
		}
		outcomes[outcome]++
	}
	for _, f := range faults {
		kills[f.name]++
	}
	changes := 0
	for _, list := range h.answered {
		changes += len(list)
	}
	t.Logf("%s: %d operations: %s; %d changes, %d rows, %d edges in doubt; killed: %s; %d edges differ, %.0f of a million operations",
		r.mode, len(r.results), fmt.Sprint(outcomes), changes, len(found.forward), len(h.doubtful), fmt.Sprint(kills), len(different),
		1e6*float64(len(different))/float64(len(r.results)))
}
