package reconcile_test

import (
	"context"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sides"
)

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
			m, written := double.Of(oracle.New()), false
			m.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
			m.Apply(t.Context(), storage.Inverse, []storage.Edge{inverse}, storage.IfNewer)
			m.Instead.RepairInverse = func(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
				if newer := []storage.Edge{edgeAt(storage.None, 10)}; !written {
					written = true
					m.Apply(ctx, storage.Forward, newer, storage.IfNewer)
					m.Apply(ctx, storage.Inverse, newer, storage.IfNewer)
				}
				return m.Store.RepairInverse(ctx, repairs)
			}
			done, err := reconcile.RepairEdges(t.Context(), m, one)
			must.That(t, err == nil && len(done.Left) == 0, "%+v, %v", done, err)
			row, followers := inverseOf(t, m.Store)
			check.That(t, row == edgeAt(storage.None, 10) && followers == 0, "row %+v, %d followers", row, followers)
		})
	}
}

func TestRepairMakesATombstoneOfARowTooMany(t *testing.T) {
	s := oracle.New()
	s.Apply(t.Context(), storage.Inverse, []storage.Edge{edgeAt(storage.Following, 1e9)}, storage.IfNewer)
	m, err := reconcile.RepairEdges(t.Context(), s, one)
	must.That(t, m.Rows == 1 && len(m.Left) == 0 && err == nil, "%+v, %v", m, err)
	row, followers := inverseOf(t, s)
	check.That(t, row == edgeAt(storage.None, 0) && followers == 0, "row %+v, %d followers", row, followers)
	// The next row is newer.
	s.Apply(t.Context(), storage.Inverse, []storage.Edge{edgeAt(storage.Following, 1)}, storage.IfNewer)
	row, _ = inverseOf(t, s)
	check.Equal(t, "the next row", row, edgeAt(storage.Following, 1))
}

// A row that changes whenever it is repaired stays as it is.
func TestRepairGivesUp(t *testing.T) {
	r, at := double.Of(oracle.New()), storage.Micros(1e9)
	r.Instead.RepairInverse = func(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
		at++
		r.Apply(ctx, storage.Inverse, []storage.Edge{edgeAt(storage.Blocking, at)}, storage.IfNewer)
		return r.Store.RepairInverse(ctx, repairs)
	}
	r.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
	m, err := reconcile.RepairEdges(t.Context(), r, one)
	check.That(t, m.Rows == 0 && slices.Equal(m.Left, one) && err != nil, "%+v, %v", m, err)
}

// An edge is written, on both sides, once one of its rows has been read.
func TestRepairDoesNotUndoAWriteForAMoment(t *testing.T) {
	w, done := double.Of(oracle.New()), false
	write := func(edge storage.Edge) {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			w.Apply(t.Context(), side, []storage.Edge{edge}, storage.IfNewer)
		}
	}
	write(edgeAt(storage.Following, 5))
	double.After(w, func(storage.Side, []storage.Pair, []storage.Result[storage.Edge]) {
		if !done {
			done = true
			write(edgeAt(storage.None, 10))
		}
	}, storage.EdgeLookups...)
	w.Instead.RepairInverse = func(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
		results := w.Store.RepairInverse(ctx, repairs)
		row, _ := inverseOf(t, w.Store)
		check.Equal(t, "the row for a moment", row, edgeAt(storage.None, 10))
		return results
	}
	m, err := reconcile.RepairEdges(t.Context(), w, one)
	check.That(t, len(m.Left) == 0 && err == nil, "%+v, %v", m, err)
}
