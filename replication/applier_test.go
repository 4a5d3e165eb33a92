package replication_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/replication"
	"kith/storage"
)

const shards = 4

// gate is a store whose shards can be made to fail or to wait.
type gate struct {
	storage.EdgeWriter
	mu      sync.Mutex
	shards  *storage.ShardMap
	down    map[int]bool
	batches [][]storage.Edge
	hold    chan struct{}  // when set, every apply waits for it
	failed  []time.Time    // when it failed
	waiting int            // how many applies are waiting
	refused storage.UserID // the next apply to this user's rows fails
	moving  storage.UserID // this user's rows fail, and no others with them
}

func newGate() *gate {
	return &gate{EdgeWriter: oracle.New(), shards: storage.NewShardMap(shards), down: map[int]bool{}}
}

var errDown = errors.New("down")

func (g *gate) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	g.mu.Lock()
	hold, down := g.hold, g.down[g.shards.Of(edges[0].To)]
	if slices.ContainsFunc(edges, func(e storage.Edge) bool { return e.To == g.refused }) {
		down, g.refused = true, 0
	}
	g.waiting++
	g.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			down = true
		}
	}
	g.mu.Lock()
	g.waiting--
	g.mu.Unlock()
	if down {
		g.mu.Lock()
		g.failed = append(g.failed, time.Now())
		g.mu.Unlock()
		return slices.Repeat([]storage.Result[storage.Changed]{{Err: errDown}}, len(edges))
	}
	g.mu.Lock()
	g.batches = append(g.batches, edges)
	moving := g.moving
	g.mu.Unlock()
	stays := slices.DeleteFunc(slices.Clone(edges), func(e storage.Edge) bool { return e.To == moving })
	results := g.EdgeWriter.Apply(ctx, side, stays, rule)
	for i, e := range edges {
		if e.To == moving {
			results = slices.Insert(results, i, storage.Result[storage.Changed]{Err: errDown})
		}
	}
	return results
}

func (g *gate) set(shard int, down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down[shard] = down
}

type published struct {
	mu   sync.Mutex
	rows []storage.Row
}

func (p *published) Publish(_ context.Context, rows []storage.Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = append(p.rows, rows...)
}

func (p *published) all() []storage.Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rows)
}

// list returns the edges of following that were published.
func (p *published) list() (edges []storage.Edge) {
	for _, r := range p.all() {
		if r.Side == storage.Forward {
			edges = append(edges, r.Edge)
		}
	}
	return edges
}

// rowsOf returns the rows of edges in following.
func rowsOf(edges ...storage.Edge) []storage.Row {
	return storage.Each(edges, func(e storage.Edge) storage.Row { return storage.Row{Side: storage.Forward, Edge: e} })
}

func start(t *testing.T, g *gate, change func(*replication.Config)) (*replication.Applier, *published) {
	t.Helper()
	p := &published{}
	cfg := replication.Config{Store: g, Shards: shards, Publisher: p, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	a := replication.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return a, p
}

func follow(from, to storage.UserID, at storage.Micros) storage.Edge {
	return storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: at}
}

// of returns users of one shard.
func of(shardNumber, n int) (ids []storage.UserID) {
	shards := storage.NewShardMap(shards)
	for id := storage.UserID(1); len(ids) < n; id++ {
		if shards.Of(id) == shardNumber {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestAcknowledgesInOrder(t *testing.T) {
	g := newGate()
	a, _ := start(t, g, nil)
	f := a.Feed("test")
	defer f.Close()
	var mu sync.Mutex
	var order []int
	for i := range 500 {
		var edges []storage.Edge
		for range rand.IntN(5) { // sometimes none
			edges = append(edges, follow(storage.UserID(1+rand.IntN(50)), storage.UserID(1+rand.IntN(50)), storage.Micros(i+1)))
		}
		err := f.Submit(t.Context(), replication.Batch{Rows: rowsOf(edges...), Done: func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		}})
		must.OK(t, err)
	}
	must.OK(t, f.Flush(t.Context()))
	check.That(t, len(order) == 500 && slices.IsSorted(order), "acknowledged %v", order)
	check.That(t, a.Status().Pending == 0 && a.Status().Lag == 0, "pending %d, lag %s", a.Status().Pending, a.Status().Lag)
}

// A shard that is down keeps its own rows waiting, and keeps batches that were submitted after them
// unacknowledged. It does not hold up the other shards.
func TestDeadShard(t *testing.T) {
	g := newGate()
	a, p := start(t, g, nil)
	f := a.Feed("test")
	defer f.Close()
	dead, alive := of(0, 2), of(1, 2)
	g.set(0, true)
	var mu sync.Mutex
	var done []string
	submit := func(name string, edges ...storage.Edge) {
		err := f.Submit(t.Context(), replication.Batch{
			Rows: rowsOf(edges...), Committed: storage.MicrosOf(time.Now().Add(-time.Minute)),
			Done: func() { mu.Lock(); defer mu.Unlock(); done = append(done, name) },
		})
		must.OK(t, err)
	}
	submit("first", follow(1, dead[0], 1), follow(1, alive[0], 1))
	submit("second", follow(2, alive[1], 1))
	must.Soon(t, "the living shard gets its rows", func() bool { return len(p.list()) == 2 })
	must.Soon(t, "the failure is seen", func() bool { return a.Status().Err() != nil })
	s := a.Status()
	check.That(t, s.Pending == 1 && s.Lag >= time.Minute && len(s.Failures) == 1 && s.Failures[0].Shard == 0 && errors.Is(s.Err(), errDown), "%+v", s)
	mu.Lock()
	check.That(t, len(done) == 0, "acknowledged %v", done)
	mu.Unlock()

	g.set(0, false)
	must.OK(t, f.Flush(t.Context()))
	check.Equal(t, "acknowledged", done, []string{"first", "second"})
	s = a.Status()
	check.That(t, s.Pending == 0 && s.Lag == 0 && s.Err() == nil, "%+v", s)
}

// A shard that fails is tried again after a time that doubles up to two seconds and is partly random. The
// failure is logged once.
func TestADeadShardIsTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.set(2, true)
		var log strings.Builder
		a := replication.New(replication.Config{Store: g, Shards: shards, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		f := a.Feed("test")
		must.OK(t, f.Submit(ctx, replication.Batch{Rows: rowsOf(follow(1, of(2, 1)[0], 1))}))
		time.Sleep(20 * time.Second)
		cancel()
		synctest.Wait()
		wait := 50 * time.Millisecond
		for i := range g.failed[1:] {
			pause := g.failed[i+1].Sub(g.failed[i])
			check.That(t, pause >= wait/2 && pause < wait, "try %d came after %s, want %s to %s", i+2, pause, wait/2, wait)
			wait = min(2*wait, 2*time.Second)
		}
		check.Least(t, "tries in 20 seconds", len(g.failed), 12)
		check.That(t, strings.Count(log.String(), "cannot write to a shard") == 1, "logged: %s", &log)
	})
}

// A lone row is applied at once. Rows that arrive while a batch is being applied are applied together.
func TestBatches(t *testing.T) {
	g := newGate()
	hold := make(chan struct{})
	g.hold = hold
	a, _ := start(t, g, func(c *replication.Config) { c.BatchRows = 10 })
	f := a.Feed("test")
	defer f.Close()
	to := of(2, 30)
	must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, to[0], 1))}))
	for i := 1; i < 26; i++ {
		must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, to[i], 1))}))
	}
	close(hold)
	must.OK(t, f.Flush(t.Context()))
	total := 0
	for i, b := range g.batches {
		total += len(b)
		check.That(t, len(b) <= 10, "batch %d has %d rows", i, len(b))
	}
	check.That(t, total == 26 && len(g.batches) <= 4, "%d rows in %d batches", total, len(g.batches))
}

// A backlog is applied by two transactions at once. They share no owner, and if one fails, it is repeated
// without the other.
func TestTwoBatchesAtOnce(t *testing.T) {
	g := newGate()
	hold := make(chan struct{})
	g.hold = hold
	a, p := start(t, g, func(c *replication.Config) { c.BatchRows = 10 })
	f := a.Feed("test")
	defer f.Close()
	owners := of(2, 9)
	must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, owners[0], 1))}))
	waiting := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.waiting
	}
	must.Soon(t, "the lone row is being applied", func() bool { return waiting() == 1 })
	g.mu.Lock()
	g.refused = owners[8]
	g.mu.Unlock()
	var edges []storage.Edge
	for i := range 20 { // the edges of one owner are far apart
		edges = append(edges, follow(storage.UserID(10+i), owners[1+i%8], storage.Micros(2+i)))
	}
	must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(edges...)}))
	hold <- struct{}{}
	must.Soon(t, "two batches are being applied", func() bool { return waiting() == 2 })
	close(hold)
	must.OK(t, f.Flush(t.Context()))
	times := map[storage.Edge]int{}
	for i, b := range g.batches {
		check.That(t, len(b) <= 10, "batch %d has %d rows", i, len(b))
		for _, e := range b {
			times[e]++
		}
	}
	for _, e := range edges {
		check.That(t, times[e] == 1, "%+v was applied %d times", e, times[e])
	}
	check.Equal(t, "batches failed", len(g.failed), 1)
	check.Equal(t, "rows were published", len(p.all()), 21)
	first, second := map[storage.UserID]bool{}, 0
	for _, e := range g.batches[1] {
		first[e.To] = true
	}
	for _, e := range g.batches[2] {
		if first[e.To] {
			second++
		}
	}
	check.That(t, second == 0, "%d rows of owners of the other batch", second)
}

func TestSubmitWaitsForRoom(t *testing.T) {
	g := newGate()
	g.set(3, true)
	a, _ := start(t, g, func(c *replication.Config) { c.MaxPending = 5 })
	f := a.Feed("test")
	defer f.Close()
	var edges []storage.Edge
	for i, to := range of(3, 12) { // more than can ever wait
		edges = append(edges, follow(storage.UserID(i+1), to, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	check.Is(t, "submitted to a shard without room", f.Submit(ctx, replication.Batch{Rows: rowsOf(edges...)}), context.DeadlineExceeded)
	f.Close()
	f = a.Feed("again")
	defer f.Close()
	g.set(3, false)
	err := applyAll(t.Context(), f, rowsOf(edges...))
	check.That(t, err == nil, "%v", err)
}

func TestPublishes(t *testing.T) {
	g := newGate()
	a, p := start(t, g, nil)
	f := a.Feed("test")
	defer f.Close()
	submit := func(known bool, e storage.Edge) {
		t.Helper()
		must.OK(t, errors.Join(f.Submit(t.Context(), replication.Batch{Rows: rowsOf(e), Known: known}), f.Flush(t.Context())))
	}
	submit(false, follow(1, 2, 10))
	submit(false, follow(1, 2, 9))  // late: a newer edge has been published
	submit(false, follow(1, 2, 10)) // again: the first applier may have died before it published the edge
	submit(true, follow(1, 2, 10))  // published long ago
	submit(true, follow(1, 3, 10))
	want := []storage.Edge{follow(1, 2, 10), follow(1, 2, 10), follow(1, 3, 10)}
	check.Equal(t, "published", p.list(), want)
}

func TestClosedFeedIsForgotten(t *testing.T) {
	g := newGate()
	g.set(0, true)
	a, p := start(t, g, nil)
	to := of(0, 2)
	f := a.Feed("test")
	err := f.Submit(t.Context(), replication.Batch{
		Rows: rowsOf(follow(1, to[0], 1)),
		Done: func() { t.Error("acknowledged") },
	})
	must.OK(t, err)
	must.Soon(t, "the failure is seen", func() bool { return a.Status().Err() != nil })
	f.Close()
	s := a.Status()
	check.That(t, s.Pending == 0 && s.Lag == 0, "%+v", s)
	g.set(0, false)
	other := a.Feed("other")
	defer other.Close()
	must.OK(t, applyAll(t.Context(), other, rowsOf(follow(1, to[1], 1))))
	got := p.list()
	check.That(t, len(got) == 1 && got[0].To == to[1], "published %v", got)
}

func TestSourcesComeByName(t *testing.T) {
	a, _ := start(t, newGate(), nil)
	for _, name := range []string{"b", "c", "a"} {
		defer a.Feed(name).Close()
	}
	sources := a.Status().Sources
	check.That(t, len(sources) == 3 && sources[0].Source == "a" && sources[1].Source == "b" && sources[2].Source == "c", "%+v", sources)
}

// applyAll submits rows and waits until they have been applied.
func applyAll(ctx context.Context, f *replication.Feed, rows []storage.Row) error {
	if err := f.Submit(ctx, replication.Batch{Rows: rows}); err != nil {
		return err
	}
	return f.Flush(ctx)
}
