package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
)

// If a block was lost, its repair ends the follow of the blocked user, on both sides. If an acceptance
// was lost, its repair makes a follow. These follows are reported with the repairs, too.
func TestRepairsHaveTheirConsequences(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *watched) {
		for name, repair := range map[string]func(t *testing.T, onRepair func(context.Context, []storage.Row), lose func()){
			"incremental": func(t *testing.T, onRepair func(context.Context, []storage.Row), lose func()) {
				w.incremental(t, nil)
				lose()
				r := w.incremental(t, func(cfg *reconcile.ChangesConfig) { cfg.OnRepair = onRepair })
				check.That(t, r.Left() == 0 && r.Repaired[reconcile.WrongType] == 1 && r.Repaired[reconcile.Missing] == 1, "%+v", r)
			},
			"realtime": func(t *testing.T, onRepair func(context.Context, []storage.Row), lose func()) {
				w.begun(t)
				w.watch(t, func(cfg *reconcile.ChangesConfig) { cfg.OnRepair = onRepair })
				lose()
			},
		} {
			t.Run(name, func(t *testing.T) { w.repairWithConsequences(t, repair) })
		}
	})
}

func (w *watched) repairWithConsequences(t *testing.T, repair func(t *testing.T, onRepair func(context.Context, []storage.Row), lose func())) {
	base := 1000 + storage.UserID(w.clock.Add(10))
	blocker, blocked, asker, asked := base, base+1, base+2, base+3
	both := func(side storage.Side, from, to storage.UserID) func() error {
		p := []storage.Pair{{From: from, To: to}}
		return func() error {
			a, b := storage.EdgeLookups[side].Read(t.Context(), w, p...)[0], storage.EdgeLookups[side.Replica()].Read(t.Context(), w, p...)[0]
			if a.Err != nil || a != b {
				return fmt.Errorf("%d → %d: %s %+v, %s %+v", from, to, side, a, side.Replica(), b)
			}
			return nil
		}
	}
	for _, e := range []storage.Edge{
		{From: blocker, To: blocked, Type: storage.Following}, {From: blocked, To: blocker, Type: storage.Following}, {From: asker, To: asked, Type: storage.Following},
	} {
		w.write(t, storage.Forward, e, false)
		must.OKSoon(t, both(storage.Forward, e.From, e.To))
	}
	var mu sync.Mutex
	var rows []storage.Row
	onRepair := func(_ context.Context, now []storage.Row) {
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, now...)
	}
	var block, accepted storage.Edge
	repair(t, onRepair, func() {
		block = w.write(t, storage.Forward, storage.Edge{From: blocker, To: blocked, Type: storage.Blocking}, true)
		accepted = w.write(t, storage.Requests, storage.Edge{From: asker, To: asked, Type: storage.Accepted}, true)
		must.OKSoon(t, func() error { // replication has applied them
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.lose) > 0 {
				return fmt.Errorf("%d are on their way", len(w.lose))
			}
			return nil
		})
	})
	for _, c := range []struct {
		side storage.Side
		want storage.Edge
	}{
		{storage.Forward, block},
		{storage.Forward, storage.Edge{From: blocked, To: blocker, Type: storage.None, UpdateTime: block.UpdateTime}},
		{storage.Requests, accepted},
		{storage.Forward, storage.Edge{From: asked, To: asker, Type: storage.Following, UpdateTime: accepted.UpdateTime}},
	} {
		must.OKSoon(t, func() error {
			if err := both(c.side, c.want.From, c.want.To)(); err != nil {
				return err
			}
			if e := storage.EdgeLookups[c.side].Read(t.Context(), w, c.want.Pair())[0].Value; e != c.want {
				return fmt.Errorf("got %+v, want %+v", e, c.want)
			}
			mu.Lock()
			defer mu.Unlock()
			// Replication propagates consequences as well, and may be faster.
			if follows := c.want != block && c.want != accepted; !follows && !slices.Contains(rows, storage.Row{Side: c.side, Edge: c.want}) {
				return fmt.Errorf("%+v is not reported in %+v", c.want, rows)
			}
			return nil
		})
	}
	counts := func(id storage.UserID) storage.Counts {
		c := storage.CountLookups.Read(t.Context(), w, id)[0].Value
		c.Version = 0
		return c
	}
	for id, want := range map[storage.UserID]storage.Counts{
		blocker: {}, blocked: {}, asker: {Following: 1, Follower: 1, Friend: 1}, asked: {Following: 1, Follower: 1, Friend: 1},
	} {
		check.Equal(t, fmt.Sprintf("counts of %d", id), counts(id), want)
	}
}

// In modes without a log that propagates the consequences of repairs, the repair itself propagates them.
func TestRepairAppliesWhatFollows(t *testing.T) {
	g := newGraph(t, 12, 2, 10, 20)
	block := g.lostBlock(g.apart[0], g.apart[1])
	accepted := g.lostAcceptance(g.apart[2], g.apart[3])
	m, err := reconcile.RepairEdges(t.Context(), g, []reconcile.Key{{Side: block.side, Pair: block.pair}, {Side: accepted.side, Pair: accepted.pair}})
	must.That(t, err == nil && m.Rows == 2 && len(m.Left) == 0, "%+v, %v", m, err)
	for _, want := range []storage.Edge{
		{From: g.apart[1], To: g.apart[0], Type: storage.None, UpdateTime: 2e15 + 1}, // just after the follow
		{From: g.apart[3], To: g.apart[2], Type: storage.Following, UpdateTime: 1e15},
	} {
		check.That(t, slices.Contains(m.After, storage.Row{Side: storage.Forward, Edge: want}), "%+v is not among what followed: %+v", want, m.After)
	}
	check.Equal(t, "how many rows followed", len(m.After), 2)
	g.whole()
}
