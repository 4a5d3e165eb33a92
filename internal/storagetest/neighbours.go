package storagetest

import (
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// neighbours: whole lists in ascending order of the peer's id.
type neighbours struct{ *harness }

func (s neighbours) AnUnknownOwnerHasNone(t *testing.T, side storage.Side) {
	owners := []storage.UserID{s.id(), s.newUsers(t, 1)[0].ID}
	for _, got := range found(t, storage.NeighbourLookups[side].Read(t.Context(), s.store, owners...), 2) {
		wantList(t, "neighbours", got, nil)
	}
}

func (s neighbours) TheyAscend(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(8)
	for i, k := range []int{3, 0, 7, 1, 5, 2, 6, 4} {
		s.apply(t, side, follow(side, owner, peers[k], i))
	}
	wantList(t, "neighbours", s.of(t, side, owner)[0], peers)
}

func (s neighbours) OnlyFollowsCount(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(4)
	s.apply(t, side,
		follow(side, owner, peers[0], 1),
		edge(side, owner, peers[1], storage.None, at(2)),
		edge(side, owner, peers[2], storage.Blocking, at(3)),
		follow(side, owner, peers[3], 4),
	)
	wantList(t, "neighbours", s.of(t, side, owner)[0], []storage.UserID{peers[0], peers[3]})

	s.apply(t, side, edge(side, owner, peers[0], storage.None, at(5)), follow(side, owner, peers[2], 6))
	wantList(t, "later", s.of(t, side, owner)[0], []storage.UserID{peers[2], peers[3]})
}

func (s neighbours) ALargeBatchIsAnswered(t *testing.T, side storage.Side) {
	owners, peers := s.ids(many), s.sortedIDs(many)
	var rows []storage.Edge
	for i := range many { // one long list, and a short one for each of the others
		rows = append(rows, follow(side, owners[0], peers[i], i))
		if i > 0 {
			rows = append(rows, follow(side, owners[i], peers[i], i))
		}
	}
	s.apply(t, side, rows...)
	for i, got := range s.of(t, side, owners...) {
		want := peers
		if i > 0 {
			want = peers[i : i+1]
		}
		must.That(t, slices.Equal(got, want), "owner %d: got %d neighbours, want %d", i, len(got), len(want))
	}
}

func (s neighbours) of(t *testing.T, side storage.Side, owners ...storage.UserID) [][]storage.UserID {
	t.Helper()
	return found(t, storage.NeighbourLookups[side].Read(t.Context(), s.store, owners...), len(owners))
}
