package storagetest

import (
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// apply: which edges are written, and what is reported about them. What happens to
// the counts is in applyCounts.
type apply struct{ *harness }

func (s apply) AnEmptyBatchHasNoResults(t *testing.T, side storage.Side) {
	answers(t, s.store.Apply(t.Context(), side, nil, storage.IfNewer), 0)
	answers(t, s.store.Apply(t.Context(), side, []storage.Edge{}, storage.IfAbsent), 0)
}

func (s apply) AMissingEdgeIsWritten(t *testing.T, side storage.Side) {
	for _, rule := range []storage.Rule{storage.IfNewer, storage.IfAbsent} {
		for _, kind := range typesOf(side) { // also a tombstone, which decides whether later edges are newer
			s.wantWritten(t, side, rule, edge(side, s.id(), s.id(), kind, at(1)))
		}
	}
}

func (s apply) ANewerEdgeIsWritten(t *testing.T, side storage.Side) {
	for _, from := range typesOf(side) {
		for _, to := range typesOf(side) { // also of the same type
			row := edge(side, s.id(), s.id(), from, at(1))
			s.apply(t, side, row)
			row.Type, row.UpdateTime = to, at(2) // a microsecond is enough
			s.wantWritten(t, side, storage.IfNewer, row)
		}
	}
}

func (s apply) AnOlderEdgeIsIgnored(t *testing.T, side storage.Side) {
	for _, from := range typesOf(side) {
		for _, to := range typesOf(side) {
			row := edge(side, s.id(), s.id(), from, at(2))
			s.apply(t, side, row)
			late := row
			late.Type, late.UpdateTime = to, at(1)
			s.wantIgnored(t, side, storage.IfNewer, late, row)
		}
	}
}

func (s apply) AnEdgeOfTheSameTimeIsIgnored(t *testing.T, side storage.Side) {
	for _, from := range typesOf(side) {
		for _, to := range typesOf(side) {
			row := edge(side, s.id(), s.id(), from, at(1))
			s.apply(t, side, row)
			same := row
			same.Type = to
			s.wantIgnored(t, side, storage.IfNewer, same, row)
		}
	}
}

func (s apply) IfAbsentYieldsToAnyRow(t *testing.T, side storage.Side) {
	for _, from := range typesOf(side) {
		for _, to := range typesOf(side) {
			row := edge(side, s.id(), s.id(), from, at(5))
			s.apply(t, side, row)
			for _, time := range []storage.Micros{at(4), at(5), at(6)} {
				next := row
				next.Type, next.UpdateTime = to, time
				s.wantIgnored(t, side, storage.IfAbsent, next, row)
			}
		}
	}
}

// Each order is that of a pair of its own; the n-th events of all pairs are one batch.
func (s apply) AnyOrderEndsWithTheNewest(t *testing.T, side storage.Side) {
	orders := permutations(4)
	events, newest := make([][]storage.Edge, len(orders)), make([]int, len(orders))
	for i := range orders {
		owner, peer := s.id(), s.id()
		events[i] = []storage.Edge{
			follow(side, owner, peer, 1),
			edge(side, owner, peer, storage.None, at(2)),
			edge(side, owner, peer, storage.Blocking, at(3)),
			follow(side, owner, peer, 4),
		}
		newest[i] = -1
	}
	for n := range 4 {
		batch := make([]storage.Edge, len(orders))
		for i, order := range orders {
			batch[i] = events[i][order[n]]
		}
		for i, got := range s.apply(t, side, batch...) {
			wantEqual(t, "changed", got.Changed, orders[i][n] > newest[i])
			newest[i] = max(newest[i], orders[i][n])
			wantEqual(t, "row reported", got.Row, events[i][newest[i]])
		}
	}
	last := storage.Each(events, func(of []storage.Edge) storage.Edge { return of[3] })
	wantList(t, "rows", found(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsOf(last)...), len(last)), last)
}

func (s apply) ApplyingAgainChangesNothing(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.ids(6)
	var rows []storage.Edge
	for i, peer := range peers {
		rows = append(rows, edge(side, owner, peer, allTypes[i%3], at(i)))
	}
	s.apply(t, side, rows...)
	before := s.countsOf(t, owner)
	for _, rule := range []storage.Rule{storage.IfNewer, storage.IfAbsent} {
		for i, got := range s.applyRule(t, side, rule, rows...) {
			wantApplied(t, "answer", got, storage.Changed{Row: rows[i]})
		}
	}
	wantList(t, "rows", found(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsOf(rows)...), len(rows)), rows)
	wantEqual(t, "counts", s.countsOf(t, owner), before)
}

// If a pair occurs more than once, only the last Row is checked. An earlier Row may or may not
// be the state in between.
func (s apply) EdgesOfOnePairAreJudgedInTurn(t *testing.T, side storage.Side) {
	owner, peer, other := s.id(), s.id(), s.id()
	batch := []storage.Edge{
		follow(side, owner, peer, 2),
		edge(side, owner, peer, storage.Blocking, at(1)), // older
		follow(side, owner, other, 1),
		edge(side, owner, peer, storage.Blocking, at(2)), // same time
		edge(side, owner, peer, storage.None, at(3)),
		edge(side, owner, peer, storage.None, at(3)), // the same edge
		follow(side, owner, peer, 5),
		edge(side, owner, peer, storage.Blocking, at(4)), // older
	}
	got := s.apply(t, side, batch...)
	wantList(t, "changed", changed(got), []bool{true, false, true, false, true, false, true, false})
	wantEqual(t, "row reported at the end", got[7].Row, batch[6])
	wantEqual(t, "row", s.edgeOf(t, side, batch[0].Pair()), batch[6])
	wantEqual(t, "row of the other pair", s.edgeOf(t, side, batch[2].Pair()), batch[2])
}

func (s apply) IfAbsentTakesTheFirstOfOnePair(t *testing.T, side storage.Side) {
	owner, peer := s.id(), s.id()
	batch := []storage.Edge{
		edge(side, owner, peer, storage.None, at(2)),
		follow(side, owner, peer, 3),
		follow(side, owner, peer, 1),
	}
	got := s.applyRule(t, side, storage.IfAbsent, batch...)
	wantList(t, "changed", changed(got), []bool{true, false, false})
	wantEqual(t, "row reported at the end", got[2].Row, batch[0])
	wantEqual(t, "row", s.edgeOf(t, side, batch[0].Pair()), batch[0])
}

func (s apply) TheSidesAreIndependent(t *testing.T, side storage.Side) {
	for _, other := range otherThan(side) {
		ids := s.ids(2)
		row := follow(side, ids[0], ids[1], 2)
		s.apply(t, side, row)
		wantMissing(t, storage.EdgeLookups[other].Read(t.Context(), s.store, row.Pair()), 1)

		late := row
		late.Type, late.UpdateTime = storage.None, at(1)
		s.wantWritten(t, other, storage.IfNewer, late) // that side has nothing newer
		wantEqual(t, "row of the first side", s.edgeOf(t, side, row.Pair()), row)
	}
}

func (s apply) EachEdgeIsAnsweredAtItsIndex(t *testing.T, side storage.Side) {
	owners, peer := s.ids(24), s.id()
	rows := make([]storage.Edge, len(owners))
	for i, owner := range owners {
		rows[i] = follow(side, owner, peer, i)
		if i%2 == 0 {
			s.apply(t, side, rows[i])
		}
	}
	for i, got := range s.apply(t, side, rows...) {
		wantApplied(t, "answer", got, storage.Changed{Row: rows[i], Changed: i%2 == 1})
	}
}

// The batch has more edges than a statement holds. Each pair occurs twice, far apart: every third
// pair gets a newer edge, the others get an older one.
func (s apply) ALargeBatchIsApplied(t *testing.T, side storage.Side) {
	const pairs = many / 2
	owners, peers := s.ids(10), s.ids(pairs)
	batch := make([]storage.Edge, many)
	want := make([]storage.Edge, pairs)
	for i := range pairs {
		batch[i] = follow(side, owners[i%len(owners)], peers[i], i)
		later := batch[i]
		later.Type, later.UpdateTime = storage.None, later.UpdateTime-1
		want[i] = batch[i]
		if i%3 == 0 {
			later.UpdateTime += 2
			want[i] = later
		}
		batch[pairs+i] = later
	}
	for i, got := range s.apply(t, side, batch...) {
		want := i < pairs || i%pairs%3 == 0
		must.That(t, got.Changed == want, "edge %d: changed is %v, want %v", i, got.Changed, want)
	}
	got := found(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsOf(want)...), pairs)
	live := make([]int64, len(owners))
	for i := range pairs {
		must.That(t, got[i] == want[i], "pair %d: got %+v, want %+v", i, got[i], want[i])
		if want[i].Type == storage.Following && side.Truth() == storage.Forward { // requests are not counted
			live[i%len(owners)]++
		}
	}
	for i, counts := range found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), len(owners)) {
		wantEqual(t, "count", counts.Of(side), live[i])
	}
}

// wantWritten applies an edge and checks that it is reported and read back.
func (s apply) wantWritten(t *testing.T, side storage.Side, rule storage.Rule, e storage.Edge) {
	t.Helper()
	wantApplied(t, "answer", s.applyRule(t, side, rule, e)[0], storage.Changed{Row: e, Changed: true})
	wantEqual(t, "row", s.edgeOf(t, side, e.Pair()), e)
}

// wantIgnored applies an edge and checks that the present row stays.
func (s apply) wantIgnored(t *testing.T, side storage.Side, rule storage.Rule, e, row storage.Edge) {
	t.Helper()
	wantApplied(t, "answer", s.applyRule(t, side, rule, e)[0], storage.Changed{Row: row})
	wantEqual(t, "row", s.edgeOf(t, side, e.Pair()), row)
}

func changed(applied []storage.Changed) []bool {
	return storage.Each(applied, func(c storage.Changed) bool { return c.Changed })
}

// permutations returns all orders of 0 … n−1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for i := range n {
			order := append([]int{}, shorter[:i]...)
			order = append(order, n-1)
			all = append(all, append(order, shorter[i:]...))
		}
	}
	return all
}
