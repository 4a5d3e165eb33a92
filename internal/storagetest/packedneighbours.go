package storagetest

import (
	"slices"
	"testing"

	"kith/storage"
)

// packedNeighbours: what stores have packed equals [neighbours]. A store may have nothing packed;
// then nothing is Found.
type packedNeighbours struct{ *harness }

func (packedNeighbours) sides() []storage.Side { return followSides }

func (s packedNeighbours) WhatIsFoundIsTheList(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.ids(60)
	for step, kind := range []storage.EdgeType{storage.Following, storage.None, storage.Blocking, storage.Following} {
		for i := step; i < len(peers); i += 1 + step {
			s.apply(t, side, edge(side, owner, peers[i], kind, at(step)))
			if i%7 == 0 {
				s.comparePacked(t, side, owner)
			}
		}
		s.comparePacked(t, side, owner)
	}
}

func (s packedNeighbours) EachKeyIsAnsweredAtItsIndex(t *testing.T, side storage.Side) {
	owners, peers := s.ids(9), s.ids(9)
	for i, owner := range owners {
		for j := range i {
			s.apply(t, side, follow(side, owner, peers[j], j))
		}
	}
	batch := slices.Concat(owners, owners[3:6], []storage.UserID{s.id()}, owners[8:]) // some twice
	results := s.comparePacked(t, side, batch...)
	for i, owner := range batch {
		if first := results[slices.Index(batch, owner)]; first.Found != results[i].Found {
			t.Errorf("owner %d is found once: %v, then %v", owner, first.Found, results[i].Found)
		}
	}
}

func (s packedNeighbours) WithoutFollowsThereIsNoList(t *testing.T, side storage.Side) {
	owner := s.id()
	s.apply(t, side, edge(side, owner, s.id(), storage.Blocking, at(1)))
	wantMissing(t, storage.PackedLookups[side].Read(t.Context(), s.store, s.id(), s.newUsers(t, 1)[0].ID, owner), 3)
}

func (s packedNeighbours) RequestsAreNotPacked(t *testing.T) {
	for _, side := range []storage.Side{storage.Requests, storage.Inbox} {
		owner := s.id()
		s.apply(t, side, edge(side, owner, s.id(), storage.Pending, at(1)))
		wantMissing(t, storage.PackedLookups[side].Read(t.Context(), s.store, owner, s.id()), 2)
	}
}

// comparePacked compares the lists that are packed with the lists in rows.
func (s packedNeighbours) comparePacked(t *testing.T, side storage.Side, owners ...storage.UserID) []storage.Result[[]storage.UserID] {
	t.Helper()
	results := storage.PackedLookups[side].Read(t.Context(), s.store, owners...)
	want := found(t, storage.NeighbourLookups[side].Read(t.Context(), s.store, owners...), len(owners))
	for i, got := range answers(t, results, len(owners)) {
		if results[i].Found {
			wantList(t, "packed", got, want[i])
		}
	}
	return results
}
