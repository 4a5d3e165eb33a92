package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sides"
)

// quick is a scan with many small steps.
func quick(store reconcile.FullStore) reconcile.FullConfig {
	return reconcile.FullConfig{Store: store, Window: time.Millisecond, MaxLoad: 1, Owners: 20, GroupRows: 2, SliceRows: 500}
}

func scan(t testing.TB, cfg reconcile.FullConfig) reconcile.Report {
	t.Helper()
	r, err := reconcile.Full(t.Context(), cfg)
	must.OK(t, err)
	return r
}

// nothingIsFound fails the test if another scan finds anything.
func (g *graph) nothingIsFound() {
	g.t.Helper()
	check.Equal(g.t, "what another scan finds", scan(g.t, quick(g)).Findings, nil)
}

func TestAWholeStoreHasNothingToFind(t *testing.T) {
	g := newGraph(t, 1, 3, 200, 3000)
	r := scan(t, quick(g))
	check.That(t, r.Total() == 0 && r.RowsRead == 0 && r.Unsettled == 0 && g.requests >= 500, "%+v", r)
	check.Equal(t, "rows that were digested", r.Rows, [8]int64{3000, 3000, int64(g.requests), int64(g.requests), 750, 750, 1500, 1500})
}

func TestFullFindsExactlyTheDamageAndRepairsIt(t *testing.T) {
	for name, graphOf := range map[string]func(*testing.T) *graph{
		"one file":    func(t *testing.T) *graph { return newGraph(t, 2, 1, 100, 1500) },
		"three files": func(t *testing.T) *graph { return newGraph(t, 2, 3, 100, 1500) },
		"two MariaDB servers": func(t *testing.T) *graph {
			dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)
			return newGraphOn(t, 2, "mysql", dsns, dsns, 100, 1500)
		},
	} {
		t.Run(name, func(t *testing.T) { findAndRepair(t, graphOf(t)) })
	}
}

func findAndRepair(t *testing.T, g *graph) {
	damaged := g.damage(12)
	sameTraces(t, scan(t, quick(g)).Findings, damaged)

	cfg := quick(g)
	cfg.Repair = true
	r := scan(t, cfg)
	sameTraces(t, r.Findings, damaged) // the dry run has changed nothing
	check.That(t, r.Left() == 0 && r.Unsettled == 0, "left: %+v", r)
	g.nothingIsFound()
	check.Equal(t, "friends after a false block", storage.CountLookups.Read(t.Context(), g, g.apart[6:7]...)[0].Value.Friend, 1)
	g.whole()
}

func TestAGroupTooLargeForMemoryIsReadInParts(t *testing.T) {
	g := newGraph(t, 3, 2, 40, 600)
	damaged := g.damage(6)
	cfg := quick(g)
	cfg.SliceRows = 3
	sameTraces(t, scan(t, cfg).Findings, damaged)
}

func TestDamageOfTheForwardSideIsTakenOver(t *testing.T) {
	g := newGraph(t, 4, 3, 150, 2000)
	rows := g.rows(storage.Forward)
	for i, e := range rows[:800] {
		switch i % 4 {
		case 0:
			g.remove(storage.Forward, e.Pair())
		case 1:
			e.Type = (e.Type + 1) % 3
			g.put(storage.Forward, e)
		case 2:
			e.UpdateTime -= 7
			g.put(storage.Forward, e)
		case 3:
			e.UpdateTime += 1e10
			g.put(storage.Forward, e)
		}
	}
	damaged := g.rows(storage.Forward)
	kinds := make(map[storage.Pair]storage.EdgeType)
	for _, e := range damaged {
		kinds[e.Pair()] = e.Type
	}
	// A follow that the damage has made forbidden by a block ends, and nothing else ends.
	kept := func(e storage.Edge) bool {
		return kinds[e.Pair()] != storage.Following || kinds[reversed(e.Pair())] != storage.Blocking
	}
	of := func(rows []storage.Edge) (all []storage.Edge) {
		for _, e := range rows {
			if kept(e) {
				all = append(all, e)
			}
		}
		return all
	}
	must.That(t, len(of(damaged)) < len(damaged), "no follow has come to be against a block")
	cfg := quick(g)
	cfg.Repair = true
	check.Equal(t, "what is left", scan(t, cfg).Left(), 0)
	check.That(t, slices.Equal(of(g.rows(storage.Forward)), of(damaged)), "the forward side was changed")
	g.whole()
	g.nothingIsFound()
}

func TestAMissingUserCountIsFoundAndMade(t *testing.T) {
	g := newGraph(t, 5, 2, 50, 500)
	user := g.users[slices.IndexFunc(storage.CountLookups.Read(t.Context(), g, g.users...), func(c storage.Result[storage.Counts]) bool {
		return c.Value.Friend > 0 && c.Value.Favorites > 0 && c.Value.Posts+c.Value.Favorited == 0
	})]
	g.exec(user, "DELETE FROM user_counts WHERE user_id = ?", int64(user))
	cfg := quick(g)
	cfg.Repair = true
	r := scan(t, cfg)
	sameTraces(t, r.Findings, []trace{
		{kind: reconcile.WrongCount, side: storage.Forward, user: user},
		{kind: reconcile.WrongCount, side: storage.Inverse, user: user},
		{kind: reconcile.WrongCount, side: storage.Favorites, user: user},
	})
	g.whole()
}

// dying is a store in which a scan can no longer save anything, as if the scan had been killed.
type dying struct {
	*graph
	dead atomic.Bool
}

func (d *dying) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	if d.dead.Load() {
		return errors.New("dead")
	}
	return d.graph.SaveCheckpoint(ctx, name, value)
}

// scanInRuns scans in many runs, each of which is ended, or killed, after some steps, until one comes to the end. The report is that one's.
func (g *graph) scanInRuns(cfg reconcile.FullConfig, killed bool) reconcile.Report {
	g.t.Helper()
	cfg.SliceRows, cfg.SaveEvery, cfg.Logger = 200, time.Nanosecond, slog.New(slog.DiscardHandler)
	for runs := 1; ; runs++ {
		must.Most(g.t, "runs", runs, 1000)
		ctx, cancel := context.WithCancel(g.t.Context())
		store, steps := &dying{graph: g}, 2+g.r.IntN(6)
		cfg.Store = store
		cfg.OnProgress = func(reconcile.Progress) {
			if steps--; steps == 0 {
				store.dead.Store(killed)
				cancel()
			}
		}
		r, err := reconcile.Full(ctx, cfg)
		cancel()
		check.That(g.t, runs == 1 || r.Resumed, "run %d began anew", runs)
		if err == nil {
			must.Least(g.t, "runs", runs, 5)
			return r
		}
		must.That(g.t, errors.Is(err, context.Canceled), "%v", err)
	}
}

func TestAScanGoesOnWhereItEnded(t *testing.T) {
	for _, killed := range []bool{false, true} {
		g := newGraph(t, 6, 3, 80, 1200)
		damaged := g.damage(8)
		r := g.scanInRuns(quick(g), killed)
		sameTraces(t, r.Findings, damaged)
		check.Equal(t, "edges that were digested", r.Rows[storage.Forward], int64(len(g.rows(storage.Forward))))
		check.Equal(t, "requests that were digested", r.Rows[storage.Inbox], int64(len(g.rows(storage.Inbox))))
	}
}

// A flaky store sometimes does not answer, after it has begun to answer.
type flaky struct {
	*graph
	calls atomic.Int64
}

func (f *flaky) fail() error {
	if n := f.calls.Add(1); n%5 == 3 && n < 60 {
		return storage.ErrUnavailable
	}
	return nil
}

func (f *flaky) Digests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
	d, err := f.graph.Digests(ctx, side, shard, owners, cut, classes)
	return d, errors.Join(err, f.fail())
}

func (f *flaky) GroupRows(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) error {
	return errors.Join(f.graph.GroupRows(ctx, side, shard, owners, cut, groups, row), f.fail())
}

func (f *flaky) WrongCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	w, err := f.graph.WrongCounts(ctx, side, shard, owners)
	return w, errors.Join(err, f.fail())
}

func TestAShardThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	g := newGraph(t, 9, 2, 100, 1000)
	damaged := g.damage(6)
	store := &flaky{graph: g}
	cfg := quick(store)
	cfg.Logger = slog.New(slog.DiscardHandler)
	r := scan(t, cfg)
	sameTraces(t, r.Findings, damaged)
	check.Least(t, "calls", store.calls.Load(), 20)
	check.Equal(t, "edges that were digested", r.Rows[storage.Forward], int64(len(g.rows(storage.Forward))))
}

// A crowded store answers no statement that looks at many rows of several owners.
type crowded struct {
	*graph
	failed int
}

func (c *crowded) Digests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
	digests, err := c.graph.Digests(ctx, side, shard, owners, cut, classes)
	rows := int64(0)
	for _, d := range digests {
		rows += d.Rows
	}
	if rows > 100 && owners.UpTo-owners.After > 1 {
		c.failed++
		return nil, storage.ErrUnavailable
	}
	return digests, err
}

// However many rows are of one user, of few users or of what is no user, a scan comes to its end.
func TestAScanDividesRangesByTheirRows(t *testing.T) {
	g := newGraph(t, 9, 1, 100, 1000)
	var followers, bookmarks []storage.Edge
	for i := range storage.UserID(400) {
		followers = append(followers, storage.Edge{From: 10_000_000 + i, To: g.users[50], Type: storage.Following, UpdateTime: 1})
		bookmarks = append(bookmarks, storage.Edge{From: g.users[50], To: 1<<62 + i, Item: 101, Type: storage.Related, UpdateTime: 1})
	}
	g.writeBoth(followers...)
	g.write(storage.Relations, bookmarks...)
	g.write(storage.RelationInbox, bookmarks...)
	lost := bookmarks[300]
	g.remove(storage.RelationInbox, lost.Pair())
	store := &crowded{graph: g}
	cfg := quick(store)
	cfg.Owners, cfg.Rows, cfg.Logger = 200, 200, slog.New(slog.DiscardHandler)
	r := scan(t, cfg)
	check.That(t, len(r.Findings) == 1 && r.Findings[0].Pair() == lost.Pair(), "found: %+v", r.Findings)
	check.Equal(t, "rows of followers that were digested", r.Rows[storage.Inverse], int64(len(g.rows(storage.Inverse))))
	check.Most(t, "statements that were ended", store.failed, 60)
}

func TestRestartBeginsAnew(t *testing.T) {
	g := newGraph(t, 7, 1, 100, 500)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quick(g)
	cfg.OnProgress = func(reconcile.Progress) { cancel() }
	_, err := reconcile.Full(ctx, cfg)
	check.Is(t, "a scan that is ended", err, context.Canceled)
	cfg = quick(g)
	cfg.Restart = true
	r := scan(t, cfg)
	check.That(t, !r.Resumed && r.Rows[storage.Forward] == 500, "%+v", r)
	check.That(t, !scan(t, quick(g)).Resumed, "a scan that has ended was gone on with")
}

// A scan does not go on with what was compared before a shard was restored: the rows that the shard has lost were there then.
func TestARestoreBeginsAnew(t *testing.T) {
	g := newGraph(t, 7, 2, 100, 500)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quick(g)
	cfg.OnProgress = func(p reconcile.Progress) {
		if p.Doing == "comparing counts" {
			cancel()
		}
	}
	_, err := reconcile.Full(ctx, cfg)
	check.Is(t, "a scan that is ended", err, context.Canceled)
	damaged := g.damage(6) // as rows are after the restore
	must.OK(t, g.Readmit(t.Context(), 1))
	r := scan(t, quick(g))
	check.That(t, !r.Resumed, "a scan from before the restore was gone on with")
	sameTraces(t, r.Findings, damaged)
}

// Writers write all the time, and the inverse side lags behind them.
func TestWritersMakeNoFindings(t *testing.T) {
	g := newGraph(t, 8, 2, 150, 2000)
	damaged := g.damage(6)
	spared := make(map[storage.Pair]bool)
	for _, d := range damaged {
		spared[d.pair], spared[reversed(d.pair)] = true, true
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var writes atomic.Int64
	for w := range uint64(3) {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(w, 9))
			for ctx.Err() == nil {
				p := storage.Pair{From: g.users[r.IntN(50)], To: g.users[r.IntN(len(g.users))]}
				if p.From == p.To || spared[p] {
					continue
				}
				change := storage.EdgeChange{To: p.To, Type: storage.EdgeType(r.IntN(4)), Ends: storage.EdgeType(r.IntN(4)), At: storage.MicrosOf(time.Now())}
				done := g.ChangeEdges(t.Context(), storage.Forward, p.From, []storage.EdgeChange{change}, storage.ChangeOptions{})[0]
				if errors.Is(done.Err, storage.ErrForbidden) {
					continue
				}
				if done.Err != nil {
					t.Error(done.Err)
					return
				}
				written := done.Value.Written()
				for len(written) > 0 {
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond) // the lag
					a := g.Apply(t.Context(), written[0].Side.Replica(), []storage.Edge{written[0].Edge}, storage.IfNewer)[0]
					check.Is(t, "a row that lags", a.Err, nil)
					written = append(written[1:], a.Value.Also...)
				}
				writes.Add(1)
			}
		})
	}
	cfg := quick(g)
	cfg.Window = 500 * time.Millisecond
	for range 2 {
		sameTraces(t, scan(t, cfg).Findings, damaged)
	}
	cfg.Repair = true
	r := scan(t, cfg)
	sameTraces(t, r.Findings, damaged)
	stop()
	writers.Wait()
	check.That(t, writes.Load() >= 20 && r.Left() == 0, "%d writes, %+v", writes.Load(), r)
	g.whole()
}

// A shard that has lost its rows does not make a repair end their other sides, however small it is beside the others.
func TestFewRowsOfEachShardAreEnded(t *testing.T) {
	g := newGraph(t, 9, 2, 200, 3000)
	cfg := quick(g)
	cfg.Repair, cfg.MaxEnded = true, 0.01
	ofShard := func(shard int) (pairs []storage.Pair) {
		for _, e := range g.rows(storage.Forward) {
			if g.shards.Of(e.From) == shard {
				pairs = append(pairs, e.Pair())
			}
		}
		return pairs
	}
	lost := ofShard(1)
	for _, p := range lost[200:] { // as if the shard had always been small
		g.remove(storage.Forward, p)
		g.remove(storage.Inverse, p)
	}
	for _, p := range append(ofShard(0)[:50], lost[:10]...) {
		g.remove(storage.Forward, p)
	}
	check.Equal(t, "rows that were ended, as few are missing on each shard", scan(t, cfg).Repaired[reconcile.Extra], 60)
	for _, p := range lost[10:200] {
		g.remove(storage.Forward, p)
	}
	before := len(g.rows(storage.Inverse))
	r, err := reconcile.Full(t.Context(), cfg)
	check.That(t, err != nil && strings.Contains(err.Error(), "of shard 1 are missing"), "all are missing on shard 1: %v %+v", err, r)
	check.Most(t, "rows that were ended", before-len(g.rows(storage.Inverse)), 20)
}

// If a large group differs, a second pass of digests finds the part that differs, and only that part is
// read.
func TestOfALargeGroupAPartIsRead(t *testing.T) {
	g := newGraph(t, 21, 3, 40, 1200) // nearly one class for each user
	lost := g.rows(storage.Forward)[0].Pair()
	g.remove(storage.Inverse, lost)
	cfg := quick(g)
	read := map[int64]reconcile.Report{}
	for _, rows := range []int64{1000, 2} {
		cfg.GroupRows = rows
		r := scan(t, cfg)
		found := 0
		for _, f := range r.Findings {
			if f.Kind == reconcile.Missing && f.Pair() == lost {
				found++
			}
		}
		check.That(t, found == 1 && r.Total() == 1, "groups of %d rows: %v", rows, r.Findings)
		read[rows] = r
	}
	r := read[1000]
	check.That(t, r.Groups == len(storage.Truths)*sides.Classes && r.GroupsRead == 1, "%+v", r)
	r = read[2]
	check.That(t, r.Groups > len(storage.Truths)*sides.Classes && r.GroupsRead == 1 && 2*r.RowsRead <= read[1000].RowsRead, "%d rows of %d groups were read, without the second pass %d", r.RowsRead, r.Groups, read[1000].RowsRead)
}

// struck is a store in which a scan is killed just after a repair that has consequences.
type struck struct {
	*dying
	kill context.CancelFunc
}

func (s *struck) RepairInverse(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
	results := s.dying.RepairInverse(ctx, repairs)
	for _, r := range results {
		if len(r.Value.Also) > 0 {
			s.dead.Store(true)
			s.kill()
		}
	}
	return results
}

// If a scan is killed between a repair and its consequences, the next scan propagates the consequences to
// their other side.
func TestWhatFollowsFromARepairOutlivesAKill(t *testing.T) {
	g := newGraph(t, 11, 2, 50, 500)
	g.lostBlock(g.apart[0], g.apart[1])
	g.lostAcceptance(g.apart[2], g.apart[3])
	g.forbiddenFollow(g.apart[4], g.apart[5])
	kills := 0
	for ended := false; !ended; {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quick(&struck{&dying{graph: g}, cancel})
		cfg.Repair, cfg.Logger = true, slog.New(slog.DiscardHandler)
		r, err := reconcile.Full(ctx, cfg)
		cancel()
		if ended = err == nil; ended {
			check.Equal(t, "what is left", r.Left(), 0)
			break
		}
		kills++
		must.That(t, errors.Is(err, context.Canceled) && kills <= 10, "%v", err)
	}
	check.Equal(t, "how often it was killed", kills, 3)
	g.whole()
}
