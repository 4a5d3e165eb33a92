package storagetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// pages: ranges of lists, newest first.
type pages struct{ *harness }

func (s pages) AnUnknownOwnerHasAnEmptyList(t *testing.T, side storage.Side) {
	wantList(t, "page", s.page(t, side, storage.PageQuery{Owner: s.id(), Limit: 10}), nil)
	user := s.newUsers(t, 1)[0]
	wantList(t, "page of a new user", s.page(t, side, storage.PageQuery{Owner: user.ID, Limit: 10, Backward: true}), nil)
}

func (s pages) OnlyFollowsAreListed(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.ids(3)
	live := follow(side, owner, peers[0], 1)
	s.apply(t, side,
		edge(side, owner, peers[1], storage.None, at(2)),
		live,
		edge(side, owner, peers[2], storage.Blocking, at(3)),
	)
	wantList(t, "page", s.page(t, side, storage.PageQuery{Owner: owner, Limit: 10}), []storage.Edge{live})
}

// Without a type, the list is that of follows, or of pending requests.
func (s pages) TheTypeSelectsTheList(t *testing.T, side storage.Side) {
	owner := s.id()
	types := allTypes[1:]
	if side.Truth() == storage.Requests {
		types = []storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed}
	}
	rows := map[storage.EdgeType][]storage.Edge{}
	for i, peer := range s.ids(12 * len(types)) {
		row := stateOf(side, owner, peer, types[i%len(types)], 100-i)
		rows[row.Type] = append(rows[row.Type], row)
		s.apply(t, side, row)
	}
	rows[storage.None] = rows[1]
	var queries []storage.PageQuery
	var want [][]storage.Edge
	for kind, list := range rows {
		after := side.Position(list[4])
		queries = append(queries,
			storage.PageQuery{Owner: owner, Type: kind, Limit: 20},
			storage.PageQuery{Owner: owner, Type: kind, Limit: 3, After: after},
			storage.PageQuery{Owner: owner, Type: kind, Limit: 3, Before: after, Backward: true})
		want = append(want, list, list[5:8], list[1:4])
	}
	for i, got := range found(t, storage.PageLookups[side].Read(t.Context(), s.store, queries...), len(queries)) {
		wantList(t, fmt.Sprintf("%+v", queries[i]), got, want[i])
	}
}

func (s pages) TheNewestComesFirst(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(4)
	rows := []storage.Edge{
		follow(side, owner, peers[2], 40), follow(side, owner, peers[0], 30),
		follow(side, owner, peers[3], 20), follow(side, owner, peers[1], 10),
	}
	s.apply(t, side, rows[2], rows[0], rows[3], rows[1])
	wantList(t, "page", s.page(t, side, storage.PageQuery{Owner: owner, Limit: 10}), rows)
}

func (s pages) OfOneTimeTheGreaterPeerComesFirst(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(8)
	var rows []storage.Edge
	for _, peer := range slices.Backward(peers) {
		rows = append(rows, follow(side, owner, peer, 5))
	}
	s.apply(t, side, rows[3], rows[0], rows[7], rows[1], rows[5], rows[2], rows[6], rows[4])
	wantList(t, "page", s.page(t, side, storage.PageQuery{Owner: owner, Limit: 10}), rows)
}

func (s pages) LimitIsTheMost(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for _, limit := range []int{1, 2, 3, len(l.rows) - 1, len(l.rows), len(l.rows) + 1, 1000} {
		got := s.page(t, side, storage.PageQuery{Owner: l.owner, Limit: limit})
		wantList(t, fmt.Sprintf("limit %d", limit), got, l.rows[:min(limit, len(l.rows))])
	}
}

func (s pages) AfterStartsBehindIt(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for i, row := range l.rows {
		got := s.page(t, side, storage.PageQuery{Owner: l.owner, Limit: 100, After: side.Position(row)})
		wantList(t, fmt.Sprintf("after row %d", i), got, l.rows[i+1:])
	}
}

func (s pages) BeforeEndsAheadOfIt(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for i, row := range l.rows {
		got := s.page(t, side, storage.PageQuery{Owner: l.owner, Limit: 100, Before: side.Position(row)})
		wantList(t, fmt.Sprintf("before row %d", i), got, l.rows[:i])
	}
}

func (s pages) BackwardTakesTheFarEnd(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	n := len(l.rows)
	whole := storage.PageQuery{Owner: l.owner, Limit: 3, Backward: true}
	wantList(t, "of the whole list", s.page(t, side, whole), l.rows[n-3:])

	before := whole
	before.Before = side.Position(l.rows[5])
	wantList(t, "before row 5", s.page(t, side, before), l.rows[2:5])
}

func (s pages) BoundsCrossedLeaveNothing(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	newer, older := side.Position(l.rows[2]), side.Position(l.rows[3])
	for _, q := range []storage.PageQuery{
		{Owner: l.owner, Limit: 5, After: older, Before: newer},
		{Owner: l.owner, Limit: 5, After: older, Before: newer, Backward: true},
		{Owner: l.owner, Limit: 5, After: newer, Before: older}, // neighbours: nothing in between
		{Owner: l.owner, Limit: 5, After: newer, Before: newer},
	} {
		wantList(t, fmt.Sprintf("%+v", q), s.page(t, side, q), nil)
	}
}

// Every combination of bounds, ends and limits, in one batch.
func (s pages) EveryRangeOfAListInOneBatch(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	queries, want := l.ranges(side)
	got := found(t, storage.PageLookups[side].Read(t.Context(), s.store, queries...), len(queries))
	for i, q := range queries {
		must.Equal(t, q, got[i], want[i])
	}
}

func (s pages) ABoundaryMayBeGone(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for i, row := range []storage.Edge{l.rows[3], l.rows[5]} { // each has rows of the same time on both sides
		gone := side.Position(row)
		row.Type, row.UpdateTime = storage.None, at(30+i)
		s.apply(t, side, row)
		k := slices.IndexFunc(l.rows, func(e storage.Edge) bool { return e.Pair() == row.Pair() })
		l.rows = slices.Delete(l.rows, k, k+1)
		s.wantCut(t, side, l, gone, k)
	}
	// A peer that was followed again is at the front. Its old position is still a position.
	moved := l.rows[4]
	old := side.Position(moved)
	moved.UpdateTime = at(50)
	s.apply(t, side, moved)
	l.rows = slices.Insert(slices.Delete(l.rows, 4, 5), 0, moved)
	s.wantCut(t, side, l, old, 5)
}

func (s pages) ABoundaryMayNeverHaveBeenThere(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for _, cut := range []struct {
		at    storage.Position
		ahead int // rows ahead of it
	}{
		{storage.Position{UpdateTime: 1}, 8},
		{storage.Position{UpdateTime: 1, Peer: math.MaxInt64}, 8},
		{storage.Position{UpdateTime: math.MaxInt64, Peer: math.MaxInt64}, 0},
		{storage.Position{UpdateTime: math.MaxInt64}, 0},
		{storage.Position{UpdateTime: at(4), Peer: l.peers[4]}, 4},
		{storage.Position{UpdateTime: at(5)}, 4},                    // behind all rows of that time
		{storage.Position{UpdateTime: at(5), Peer: l.peers[11]}, 2}, // ahead of all rows of that time
		{storage.Position{UpdateTime: at(5), Peer: l.peers[4]}, 3},  // among them
		{storage.Position{UpdateTime: at(5), Peer: l.peers[8]}, 2},  // that of a block
		{storage.Position{UpdateTime: at(3), Peer: l.peers[9]}, 4},  // that of a tombstone
	} {
		s.wantCut(t, side, l, cut.at, cut.ahead)
	}
}

func (s pages) PagingCoversTheListOnce(t *testing.T, side storage.Side) {
	l := s.makeList(t, side)
	for limit := 1; limit <= len(l.rows)+1; limit++ {
		var onward, backward []storage.Edge
		next := storage.PageQuery{Owner: l.owner, Limit: limit}
		back := storage.PageQuery{Owner: l.owner, Limit: limit, Backward: true}
		for range len(l.rows) + 1 {
			if page := s.page(t, side, next); len(page) > 0 {
				onward = append(onward, page...)
				next.After = side.Position(page[len(page)-1])
			}
			if page := s.page(t, side, back); len(page) > 0 {
				backward = append(slices.Clone(page), backward...)
				back.Before = side.Position(page[0])
			}
		}
		wantList(t, fmt.Sprintf("onward by %d", limit), onward, l.rows)
		wantList(t, fmt.Sprintf("backward by %d", limit), backward, l.rows)
	}
}

// A long list, and more queries than a statement holds, for known and unknown owners, each with
// bounds of its own.
func (s pages) ALargeBatchIsAnswered(t *testing.T, side storage.Side) {
	l := list{owner: s.id(), peers: s.ids(many)}
	for i, peer := range l.peers {
		l.rows = append(l.rows, follow(side, l.owner, peer, many-i))
	}
	s.apply(t, side, l.rows...)
	whole := s.page(t, side, storage.PageQuery{Owner: l.owner, Limit: many + 1})
	must.That(t, slices.Equal(whole, l.rows), "of %d rows %d came, or in another order", many, len(whole))

	// The rest of the batch reads a list that is a tenth as long.
	l.owner, l.rows = s.id(), nil
	for i, peer := range l.peers[:many/10] {
		l.rows = append(l.rows, follow(side, l.owner, peer, many-i))
	}
	s.apply(t, side, l.rows...)
	short, strangers := s.makeList(t, side), s.ids(many)
	queries := make([]storage.PageQuery, many)
	want := make([][]storage.Edge, many)
	for i := range many {
		switch i % 3 {
		case 0:
			k := i % len(l.rows)
			queries[i] = storage.PageQuery{Owner: l.owner, Limit: 1 + i%4, After: side.Position(l.rows[k])}
			want[i] = l.rows[k+1 : min(k+2+i%4, len(l.rows))]
		case 1:
			queries[i] = storage.PageQuery{Owner: short.owner, Limit: 1 + i%4, Backward: i%2 == 0}
			want[i] = short.rows[:1+i%4]
			if i%2 == 0 {
				want[i] = short.rows[len(short.rows)-1-i%4:]
			}
		default:
			queries[i] = storage.PageQuery{Owner: strangers[i], Limit: 5}
		}
	}
	got := found(t, storage.PageLookups[side].Read(t.Context(), s.store, queries...), many)
	for i := range many {
		must.That(t, slices.Equal(got[i], want[i]), "query %d, %+v:\ngot  %v\nwant %v", i, queries[i], got[i], want[i])
	}
}
