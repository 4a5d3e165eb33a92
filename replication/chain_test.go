package replication_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/replication"
	"kith/storage"
)

// reporting is a store that reports the rows that follow from a row, whenever the row is the present
// one afterwards.
type reporting struct {
	*gate
	also  func(row storage.Row) []storage.Row
	there bool // the rows that follow are on both sides already
}

func (s reporting) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := s.gate.Apply(ctx, side, edges, rule)
	for i, r := range results {
		if r.Err != nil || r.Value.Row != edges[i] {
			continue
		}
		results[i].Value.Also = nil
		for _, next := range s.also(storage.Row{Side: side.Truth(), Edge: edges[i]}) {
			results[i].Value.Also = append(results[i].Value.Also, storage.Written{Row: next, Inverse: s.there})
		}
	}
	return results
}

func row(side storage.Side, from, to storage.UserID, kind storage.EdgeType, at storage.Micros) storage.Row {
	return storage.Row{Side: side, Edge: storage.Edge{From: from, To: to, Type: kind, UpdateTime: at}}
}

// startReporting runs an applier over a store that reports.
func startReporting(t *testing.T, also func(storage.Row) []storage.Row, change func(*replication.Config)) (*replication.Applier, *gate, *published) {
	t.Helper()
	g := newGate()
	a, p := start(t, g, func(c *replication.Config) {
		c.Store = reporting{gate: g, also: also}
		if change != nil {
			change(c)
		}
	})
	return a, g, p
}

// onInverse reads the other side of a forward row.
func onInverse(t *testing.T, store storage.Answerer, r storage.Row) storage.Row {
	t.Helper()
	found := storage.EdgeLookups[r.Side.Replica()].Read(t.Context(), store, r.Edge.Pair())[0]
	must.OK(t, found.Err)
	return storage.Row{Side: r.Side, Edge: found.Value}
}

// Rows that follow from a row are applied on their own shards. The batch of the row is acknowledged only
// after that. If the reader of the batch dies before, it gets the batch again.
func TestBatchesWaitForWhatFollows(t *testing.T) {
	a0, b1 := of(0, 1)[0], of(1, 1)[0]
	block := row(storage.Forward, a0, b1, storage.Blocking, 10)
	ended := row(storage.Forward, b1, a0, storage.None, 11)
	a, g, p := startReporting(t, func(r storage.Row) []storage.Row {
		if r == block {
			return []storage.Row{ended}
		}
		return nil
	}, nil)
	g.set(0, true) // the end of the follow cannot be applied
	f := a.Feed("test")
	defer f.Close()
	var mu sync.Mutex
	var done []string
	submit := func(name string, rows ...storage.Row) {
		t.Helper()
		must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rows, Done: func() { mu.Lock(); defer mu.Unlock(); done = append(done, name) }}))
	}
	submit("block", block)
	submit("other", row(storage.Forward, 77, b1, storage.Following, 12))
	must.Soon(t, "the other row is there", func() bool { return slices.Contains(p.all(), row(storage.Forward, 77, b1, storage.Following, 12)) })
	must.Soon(t, "the shard's failure is seen", func() bool { return a.Status().Err() != nil })
	mu.Lock()
	check.That(t, len(done) == 0 && a.Status().Pending == 1, "acknowledged %v, %d rows pending", done, a.Status().Pending)
	mu.Unlock()
	g.set(0, false)
	must.OK(t, f.Flush(t.Context()))
	if !slices.Equal(done, []string{"block", "other"}) || a.Status().Pending != 0 {
		t.Errorf("acknowledged %v, %d rows pending", done, a.Status().Pending)
	}
	for _, r := range []storage.Row{block, ended} {
		check.Equal(t, "the other side", onInverse(t, g.EdgeWriter.(*oracle.Store), r), r)
		check.That(t, slices.Contains(p.all(), r), "%+v was not published", r)
	}
}

// Lanes that are full still hand consequences to one another.
func TestFullLanesDoNotWaitForOneAnother(t *testing.T) {
	back := func(r storage.Row) []storage.Row {
		if r.Edge.Type != storage.Blocking {
			return nil
		}
		return []storage.Row{row(storage.Forward, r.Edge.To, r.Edge.From, storage.None, r.Edge.UpdateTime)}
	}
	a, g, _ := startReporting(t, back, func(c *replication.Config) { c.MaxPending, c.BatchRows = 1, 1 })
	f := a.Feed("test")
	defer f.Close()
	here, there := of(0, 40), of(1, 40)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var rows []storage.Row
	for i := range here {
		rows = append(rows, row(storage.Forward, here[i], there[i], storage.Blocking, 5), row(storage.Forward, there[i], here[39-i], storage.Blocking, 6))
	}
	for chunk := range slices.Chunk(rows, 7) {
		must.OK(t, f.Submit(ctx, replication.Batch{Rows: chunk}))
	}
	must.OK(t, f.Flush(ctx))
	for _, r := range rows {
		must.That(t, onInverse(t, g.EdgeWriter.(*oracle.Store), back(r)[0]).Edge.UpdateTime != 0, "nothing followed from %+v", r)
	}
	// Space is released once for each row that took some.
	err := applyAll(ctx, f, rowsOf(follow(1, here[0], 9), follow(1, there[0], 9), follow(2, here[0], 9)))
	check.That(t, err == nil, "%v", err)
}

// If several rows of one pair arrive together, each that is newer than those before it is applied, in their order, and no other.
func TestRowsOfOnePairAreAppliedInTheirOrder(t *testing.T) {
	g := newGate()
	hold := make(chan struct{})
	g.hold = hold
	var mu sync.Mutex
	var applied []storage.Row
	a, _ := start(t, g, func(c *replication.Config) {
		c.Store = reporting{gate: g, also: func(r storage.Row) []storage.Row {
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, r)
			return nil
		}}
	})
	f := a.Feed("test")
	defer f.Close()
	submit := func(rows ...storage.Row) {
		t.Helper()
		must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rows}))
	}
	submit(row(storage.Forward, 5, of(1, 1)[0], storage.Following, 1)) // keeps the lane busy
	to := of(1, 1)[0]
	requests := []storage.Row{
		row(storage.Requests, 1, to, storage.Pending, 1), row(storage.Requests, 1, to, storage.Cancelled, 2),
		row(storage.Requests, 1, to, storage.Pending, 3), row(storage.Requests, 1, to, storage.Accepted, 4),
	}
	submit(row(storage.Forward, 1, to, storage.Following, 1), row(storage.Forward, 1, to, storage.None, 2),
		row(storage.Forward, 1, to, storage.Blocking, 3), row(storage.Forward, 1, to, storage.None, 4),
		requests[0], requests[1],
		row(storage.Forward, 1, to, storage.Blocking, 5), row(storage.Forward, 1, to, storage.Blocking, 2), // the old row is not applied
		requests[2], requests[3],
		row(storage.Forward, 1, to, storage.Following, 6), row(storage.Forward, 1, to, storage.None, 6)) // of rows with the same time the first counts
	submit(row(storage.Requests, 2, to, storage.Pending, 7), row(storage.Requests, 2, to, storage.Cancelled, 7))
	requests = append(requests, row(storage.Requests, 2, to, storage.Pending, 7))
	close(hold)
	must.OK(t, f.Flush(t.Context()))
	want := append([]storage.Row{row(storage.Forward, 1, to, storage.Following, 1), row(storage.Forward, 1, to, storage.None, 2),
		row(storage.Forward, 1, to, storage.Blocking, 3), row(storage.Forward, 1, to, storage.None, 4),
		row(storage.Forward, 1, to, storage.Blocking, 5), row(storage.Forward, 1, to, storage.Following, 6)}, requests...)
	check.Equal(t, "applied", slices.DeleteFunc(applied, func(r storage.Row) bool { return r.Edge.From == 5 }), want)
}

// A store reports again the rows that followed from a row that existed already, so two rows may follow
// from each other. A store that is wrong may continue without end.
func TestChainsEnd(t *testing.T) {
	for name, wrong := range map[string]struct {
		later storage.Micros // by how much the next row is later
		times int            // how often rows are applied
	}{"in a circle": {0, 2}, "without end": {1, 16}} {
		also := func(r storage.Row) []storage.Row {
			return []storage.Row{row(r.Side, r.Edge.To, r.Edge.From, r.Edge.Type, r.Edge.UpdateTime+wrong.later)}
		}
		t.Run(name, func(t *testing.T) {
			request := row(storage.Requests, of(0, 1)[0], of(1, 1)[0], storage.Accepted, 1)
			a, g, _ := startReporting(t, also, nil)
			f := a.Feed("test")
			defer f.Close()
			must.OK(t, applyAll(t.Context(), f, []storage.Row{request}))
			check.Equal(t, "batches by lanes", len(g.batches), wrong.times)
			g.batches = nil
			store := readable{reporting{gate: newGate(), also: also}}
			left := (replication.Propagator{Store: store}).Propagate(t.Context(), []storage.Written{{Row: request}})
			check.That(t, len(left) == 0, "left %v", left)
			check.Equal(t, "batches in a call", len(store.batches), wrong.times)
		})
	}
}

// readable is a reporting store that can also be read.
type readable struct{ reporting }

func (c readable) memory() *oracle.Store { return c.EdgeWriter.(*oracle.Store) }

func (c readable) Bundle(ctx context.Context, b *storage.Bundle) { c.memory().Bundle(ctx, b) }

// A row is propagated once everything that follows from it has been propagated. Until then, Propagate returns
// the index of the given row, and the rows that still have to be propagated.
func TestPropagateReportsWhatIsLeft(t *testing.T) {
	a0, b1 := of(0, 1)[0], of(1, 1)[0]
	block := row(storage.Forward, a0, b1, storage.Blocking, 10)
	ended := row(storage.Forward, b1, a0, storage.None, 11)
	other := row(storage.Forward, 77, b1, storage.Following, 12)
	there := row(storage.Requests, a0, b1, storage.Cancelled, 13)
	store := readable{reporting{gate: newGate(), also: func(r storage.Row) []storage.Row {
		if r == block {
			return []storage.Row{ended}
		}
		return nil
	}}}
	store.set(0, true)
	p := &published{}
	c := replication.Propagator{Store: store, Publisher: p}
	given := []storage.Written{{Row: other}, {Row: there, Inverse: true}, {Row: block}}
	left := c.Propagate(t.Context(), given)
	must.That(t, len(left) == 1 && left[0].Root == 2 && left[0].Row == ended && errors.Is(left[0].Err, errDown), "left %+v", left)
	got, want := p.all(), []storage.Row{there, other, block}
	check.That(t, slices.Equal(got, want), "published %v, not %v", got, want)
	store.set(0, false)
	must.Equal(t, "what is left", len(c.Propagate(t.Context(), []storage.Written{{Row: left[0].Row}})), 0)
	check.Equal(t, "the other side", onInverse(t, store, ended), ended)
}

// A row is published before what followed from it.
func TestPropagatePublishesInOrder(t *testing.T) {
	block := row(storage.Forward, 1, 2, storage.Blocking, 10)
	ended := row(storage.Forward, 2, 1, storage.None, 11)
	p := &published{}
	store := reporting{gate: newGate(), also: func(storage.Row) []storage.Row { return []storage.Row{ended} }, there: true}
	left := replication.Propagator{Store: store, Publisher: p}.Propagate(t.Context(), []storage.Written{{Row: block}})
	if want := []storage.Row{block, ended}; len(left) > 0 || !slices.Equal(p.all(), want) {
		t.Errorf("left %v, published %v, want %v", left, p.all(), want)
	}
}

// The remaining rows are in the order of the tables: follows before requests.
func TestPropagateReportsInOrder(t *testing.T) {
	store := newGate()
	store.set(1, true)
	to := of(1, 1)[0]
	request := row(storage.Requests, 77, to, storage.Pending, 10)
	follow := row(storage.Forward, 77, to, storage.Following, 11)
	c := replication.Propagator{Store: store}
	left := c.Propagate(t.Context(), []storage.Written{{Row: request}, {Row: follow}})
	check.That(t, len(left) == 2 && left[0].Root == 1 && left[0].Row == follow && left[1].Root == 0 && left[1].Row == request, "left %+v", left)
}

// A writer that ended a follow by a block may have died before it propagated the end. When the block
// comes again, a newer row may have replaced it, but the end of the follow is still propagated.
func TestPropagateMakesUpForAWriterThatDied(t *testing.T) {
	for _, engine := range []string{"memory", "sqlite"} {
		t.Run(engine, func(t *testing.T) { makesUp(t, engine) })
	}
}

func makesUp(t *testing.T, engine string) {
	const a, b = 1, 2
	block := row(storage.Forward, a, b, storage.Blocking, 10)
	for name, later := range map[string][]storage.Row{
		"the block is the newest":        nil,
		"an unblock was faster":          {row(storage.Forward, a, b, storage.None, 20)},
		"an unblock and a follow were":   {row(storage.Forward, a, b, storage.Following, 21)},
		"a late request was faster, too": {row(storage.Forward, a, b, storage.None, 20), row(storage.Requests, a, b, storage.Pending, 22)},
	} {
		t.Run(name, func(t *testing.T) {
			store := engines[engine](t)
			applied := func(side storage.Side, e storage.Edge) storage.Changed {
				r := store.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer)[0]
				must.OK(t, r.Err)
				return r.Value
			}
			follows := follow(b, a, 5)
			applied(storage.Forward, follows)
			applied(storage.Inverse, follows)
			died := applied(storage.Inverse, block.Edge) // and the rows that follow, which it reports, are lost
			must.That(t, len(died.Also) == 1, "a block reports %+v", died.Also)
			ended := died.Also[0].Row
			c := replication.Propagator{Store: store}
			for _, r := range append(later, block) {
				left := c.Propagate(t.Context(), []storage.Written{{Row: r}})
				must.That(t, len(left) == 0, "left %+v", left)
			}
			check.Equal(t, "the other side", onInverse(t, store, ended), ended)
			n := storage.CountLookups.Read(t.Context(), store, a)[0].Value
			check.That(t, n.Follower == 0 && n.Friend == 0, "counts %+v", n)
		})
	}
}
