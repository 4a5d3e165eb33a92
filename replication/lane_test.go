package replication_test

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/replication"
	"kith/storage"
)

// Rows beside those of a bucket that moves are published when they are written, and not written again: the second time they would not be new.
func TestRowsBesideAMoveArePublished(t *testing.T) {
	g := newGate()
	to := of(0, 2)
	g.moving = to[0]
	a, p := start(t, g, nil)
	f := a.Feed("test")
	defer f.Close()
	must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, to[0], 1), follow(1, to[1], 1)), Known: true}))
	must.Soon(t, "the other row is published", func() bool { return slices.Equal(p.list(), []storage.Edge{follow(1, to[1], 1)}) })
	g.mu.Lock()
	g.moving = 0
	g.mu.Unlock()
	must.OK(t, f.Flush(t.Context()))
	got, want := p.list(), []storage.Edge{follow(1, to[1], 1), follow(1, to[0], 1)}
	check.That(t, slices.Equal(got, want), "published %v, not %v", got, want)
	for _, again := range g.batches[1:] {
		check.That(t, len(again) == 1, "written again: %v", again)
	}
}
