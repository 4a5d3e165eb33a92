package storagetest

import (
	"testing"

	"kith/storage"
)

// edges: looking single edges up, on either side.
type edges struct{ *harness }

func (s edges) EveryTypeIsFound(t *testing.T, side storage.Side) {
	ids := s.ids(5)
	rows := []storage.Edge{
		edge(side, ids[0], ids[1], storage.Following, at(1)),
		edge(side, ids[0], ids[2], storage.Blocking, at(2)),
		edge(side, ids[0], ids[3], storage.None, at(3)),
	}
	if side.Truth() == storage.Forward {
		rows = append(rows, edge(side, ids[0], ids[4], storage.Denied, at(4)))
	}
	s.apply(t, side, rows...)
	wantList(t, "edges", found(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsOf(rows)...), len(rows)), rows)
}

func (s edges) UnknownPairsAreNotFound(t *testing.T, side storage.Side) {
	ids := s.ids(4)
	row := follow(side, ids[0], ids[1], 1)
	s.apply(t, side, row)
	results := storage.EdgeLookups[side].Read(t.Context(), s.store,
		side.Pair(ids[0], ids[2]), // a known owner
		row.Pair(),
		side.Pair(ids[2], ids[1]), // a known peer
		side.Pair(ids[2], ids[3]), // both unknown
		side.Pair(ids[0], ids[0]), // with oneself
	)
	wantFound(t, results, false, true, false, false, false)
}

func (s edges) TheDirectionMatters(t *testing.T, side storage.Side) {
	ids := s.ids(2)
	row := follow(side, ids[0], ids[1], 1)
	s.apply(t, side, row)
	results := storage.EdgeLookups[side].Read(t.Context(), s.store, row.Pair(), storage.Pair{From: row.To, To: row.From})
	wantFound(t, results, true, false)
}

func (s edges) TheSidesAreApart(t *testing.T) {
	ids := s.ids(3)
	forward := follow(storage.Forward, ids[0], ids[1], 1)
	inverse := follow(storage.Forward, ids[0], ids[2], 2)
	s.apply(t, storage.Forward, forward)
	s.apply(t, storage.Inverse, inverse)
	pairs := []storage.Pair{forward.Pair(), inverse.Pair()}
	wantFound(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairs...), true, false)
	wantFound(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, pairs...), false, true)
}

func (s edges) OwnersMayBeMixed(t *testing.T, side storage.Side) {
	const n = 12
	owners, peers := s.ids(n), s.ids(n)
	var rows []storage.Edge
	var pairs []storage.Pair
	for i := range n {
		for j := range n {
			pairs = append(pairs, side.Pair(owners[j], peers[i])) // peer by peer: owners alternate
			if (i+j)%3 == 0 {
				rows = append(rows, follow(side, owners[j], peers[i], i*n+j))
			}
		}
	}
	s.apply(t, side, rows...)
	results := storage.EdgeLookups[side].Read(t.Context(), s.store, pairs...)
	answers(t, results, n*n)
	for k, result := range results {
		if known := (k/n+k%n)%3 == 0; result.Found != known {
			t.Errorf("pair %d: found is %v, want %v", k, result.Found, known)
		} else if known {
			wantEqual(t, "edge", result.Value, rows[0])
			rows = rows[1:]
		}
	}
}

func pairsOf(rows []storage.Edge) []storage.Pair {
	return storage.Each(rows, storage.Edge.Pair)
}
