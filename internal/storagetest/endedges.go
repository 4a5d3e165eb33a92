package storagetest

import (
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// endings: all edges between others and a user who is being deleted end.
type endings struct{ *harness }

func (endings) sides() []storage.Side { return storage.AllSides[:] }

func (s endings) BothSidesGetTheSameTombstone(t *testing.T, side storage.Side) {
	user, peers := s.id(), s.ids(5)
	var rows []storage.Row
	for i, peer := range peers {
		e := edge(side, user, peer, storage.Following, at(i))
		s.apply(t, side, e)
		s.apply(t, side.Other(), e)
		rows = append(rows, storage.Row{Side: side, Edge: e})
	}
	for i, e := range s.end(t, user, rows, at(2)) {
		wantEqual(t, "the tombstone", e, rows[i].Edge.Pair().Edge(storage.None, max(at(2), at(i+1))))
		for _, table := range []storage.Side{side, side.Other()} {
			wantEqual(t, table.String(), s.edgeOf(t, table, e.Pair()), e)
		}
	}
	wantList(t, "what is left", s.rows(t, storage.RowsQuery{Side: side, Owner: user, Limit: 10}), nil)
}

// The other side ends however new or old it is, and even if it does not exist.
func (s endings) WhateverIsOnTheOtherSideEnds(t *testing.T, side storage.Side) {
	user, peers := s.id(), s.ids(3)
	var rows []storage.Row
	for i, peer := range peers {
		e := edge(side, user, peer, storage.Following, at(1))
		s.apply(t, side, e)
		if i > 0 {
			s.apply(t, side.Other(), e.Pair().Edge(e.Type, at(i*50)))
		}
		rows = append(rows, storage.Row{Side: side, Edge: e})
	}
	for i, e := range s.end(t, user, rows, at(60)) {
		wantEqual(t, "the tombstone", e, rows[i].Edge.Pair().Edge(storage.None, []storage.Micros{at(60), at(60), at(101)}[i]))
		wantEqual(t, "the other side", s.edgeOf(t, side.Other(), e.Pair()), e)
		wantEqual(t, "the user's side", s.edgeOf(t, side, e.Pair()), e)
	}
}

func (s endings) AllTablesEndAtOnce(t *testing.T) {
	user, peers := s.id(), s.ids(4)
	other := s.id()
	var rows []storage.Row
	tie := func(side storage.Side, from, to storage.UserID, list bool) {
		e := edge(side, from, to, storage.Following, at(1))
		s.apply(t, side, e)
		s.apply(t, side.Replica(), e)
		if list && from == user {
			rows = append(rows, storage.Row{Side: side, Edge: e})
		}
		if list && to == user {
			rows = append(rows, storage.Row{Side: side.Replica(), Edge: e})
		}
	}
	for _, peer := range peers {
		tie(storage.Forward, user, peer, true)
		tie(storage.Forward, peer, user, true)
		tie(storage.Favorites, user, peer, true)
		tie(storage.Favorites, peer, user, true)
		tie(storage.Forward, peer, other, false)
		tie(storage.Forward, other, peer, false)
	}
	tie(storage.Requests, user, peers[0], true)
	tie(storage.Favorites, user, user, true)
	before := s.countsOf(t, peers[1])
	s.end(t, user, rows, at(9))
	for _, id := range peers {
		counts := s.countsOf(t, id)
		wantEqual(t, "counts of a peer", [...]int64{counts.Following, counts.Follower, counts.Friend, counts.Favorites}, [...]int64{1, 1, 1, 0})
	}
	if now := s.countsOf(t, peers[1]).Version; now <= before.Version {
		t.Errorf("the version of a peer is %d, and was %d", now, before.Version)
	}
	counts := s.countsOf(t, user)
	counts.Version = 0
	wantEqual(t, "counts of the user", counts, storage.Counts{})
	for _, side := range storage.AllSides {
		wantList(t, side.String(), s.rows(t, storage.RowsQuery{Side: side, Owner: user, Limit: 10}), nil)
	}
}

func (s endings) MarksEndWithTheirFollows(t *testing.T) {
	users := s.newUsers(t, 3)
	user, peer, other := users[0].ID, users[1].ID, users[2].ID
	for _, pair := range []storage.Pair{{From: user, To: peer}, {From: peer, To: user}, {From: peer, To: other}} {
		e := pair.Edge(storage.Following, at(1))
		s.apply(t, storage.Forward, e)
		s.apply(t, storage.Inverse, e)
		_, _, err := s.store.SetMark(t.Context(), pair, special(true))
		must.OK(t, err)
	}
	s.end(t, user, []storage.Row{
		{Side: storage.Forward, Edge: follow(storage.Forward, user, peer, 1)}, {Side: storage.Inverse, Edge: follow(storage.Inverse, user, peer, 1)},
	}, at(2))
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(user, peer)...), 1)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(peer, user)...), 1)
	wantEqual(t, "mark of another", found(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(peer, other)...), 1)[0].Special, true)
}

// end ends rows, all of which can end.
func (s endings) end(t *testing.T, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Edge {
	t.Helper()
	return found(t, s.store.EndEdges(t.Context(), user, rows, at), len(rows))
}
