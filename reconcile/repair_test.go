package reconcile_test

import (
	"context"
	"slices"
	"testing"

	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
)

// meddled is a store that runs a function just before a repair is written.
type meddled struct {
	*oracle.Store
	before func()
}

func (m *meddled) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	if m.before != nil {
		before := m.before
		m.before = nil
		before()
	}
	return m.Store.RepairInverse(ctx, repairs)
}

var pair = storage.Pair{From: 1, To: 2}

// one is this edge alone.
var one = reconcile.KeysOf(storage.Forward, []storage.Pair{pair})

func edgeAt(kind storage.EdgeType, at storage.Micros) storage.Edge {
	return storage.Edge{From: 1, To: 2, Type: kind, UpdateTime: at}
}

// inverseOf is the inverse row, with the count of followers.
func inverseOf(t *testing.T, s *oracle.Store) (storage.Edge, int64) {
	t.Helper()
	return storage.EdgeLookups[storage.Inverse].Read(t.Context(), s, pair)[0].Value,
		storage.CountLookups.Read(t.Context(), s, 2)[0].Value.Follower
}

func TestRepairNeitherUndoesNorLosesANewerWrite(t *testing.T) {
	for name, inverse := range map[string]storage.Edge{
		"that was applied":                  edgeAt(storage.Following, 3),
		"that a false, newer time kept out": edgeAt(storage.Following, 1e9),
	} {
		t.Run(name, func(t *testing.T) {
			m := &meddled{Store: oracle.New()}
			m.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
			m.Apply(t.Context(), storage.Inverse, []storage.Edge{inverse}, storage.IfNewer)
			m.before = func() {
				newer := []storage.Edge{edgeAt(storage.None, 10)}
				m.Apply(t.Context(), storage.Forward, newer, storage.IfNewer)
				m.Apply(t.Context(), storage.Inverse, newer, storage.IfNewer)
			}
			done, err := reconcile.RepairEdges(t.Context(), m, one)
			if err != nil || len(done.Left) > 0 {
				t.Fatal(done, err)
			}
			if row, followers := inverseOf(t, m.Store); row != edgeAt(storage.None, 10) || followers != 0 {
				t.Errorf("row %+v, %d followers", row, followers)
			}
		})
	}
}

func TestRepairMakesATombstoneOfARowTooMany(t *testing.T) {
	s := oracle.New()
	s.Apply(t.Context(), storage.Inverse, []storage.Edge{edgeAt(storage.Following, 1e9)}, storage.IfNewer)
	if m, err := reconcile.RepairEdges(t.Context(), s, one); m.Rows != 1 || len(m.Left) > 0 || err != nil {
		t.Fatal(m, err)
	}
	if row, followers := inverseOf(t, s); row != edgeAt(storage.None, 0) || followers != 0 {
		t.Errorf("row %+v, %d followers", row, followers)
	}
	// The next row is newer.
	s.Apply(t.Context(), storage.Inverse, []storage.Edge{edgeAt(storage.Following, 1)}, storage.IfNewer)
	if row, _ := inverseOf(t, s); row != edgeAt(storage.Following, 1) {
		t.Errorf("row %+v", row)
	}
}

// restless is a store whose inverse row changes whenever it is repaired.
type restless struct {
	*oracle.Store
	at storage.Micros
}

func (r *restless) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	r.at++
	r.Apply(ctx, storage.Inverse, []storage.Edge{edgeAt(storage.Blocking, 1e9+r.at)}, storage.IfNewer)
	return r.Store.RepairInverse(ctx, repairs)
}

func TestRepairGivesUp(t *testing.T) {
	r := &restless{Store: oracle.New()}
	r.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
	m, err := reconcile.RepairEdges(t.Context(), r, one)
	if m.Rows != 0 || !slices.Equal(m.Left, one) || err == nil {
		t.Error(m, err)
	}
}

// written is a store in which an edge is written, on both sides, once one of its rows
// has been read.
type written struct {
	*oracle.Store
	t    *testing.T
	done bool
}

func (w *written) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	rows := storage.EdgeLookups[side].Read(ctx, w.Store, pairs...)
	if !w.done {
		w.done = true
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			w.Apply(ctx, side, []storage.Edge{edgeAt(storage.None, 10)}, storage.IfNewer)
		}
	}
	return rows
}

func (w *written) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, w.edges)
	w.Store.Bundle(ctx, b)
}

func (w *written) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	results := w.Store.RepairInverse(ctx, repairs)
	if row, _ := inverseOf(w.t, w.Store); row != edgeAt(storage.None, 10) {
		w.t.Errorf("for a moment the row was %+v", row)
	}
	return results
}

func TestRepairDoesNotUndoAWriteForAMoment(t *testing.T) {
	w := &written{Store: oracle.New(), t: t}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		w.Apply(t.Context(), side, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
	}
	if m, err := reconcile.RepairEdges(t.Context(), w, one); len(m.Left) > 0 || err != nil {
		t.Error(m, err)
	}
}
