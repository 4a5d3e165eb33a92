package storagetest

import (
	"testing"

	"kith/storage"
)

// blockLists: whom a user must not meet.
type blockLists struct{ *harness }

func (s blockLists) BothDirectionsAreListedOnce(t *testing.T) {
	ids := s.sortedIDs(4)
	user, blocked, blocking, both := ids[2], ids[0], ids[3], ids[1]
	s.block(t, user, blocked)
	s.block(t, blocking, user)
	s.block(t, user, both)
	s.block(t, both, user)
	wantList(t, "blocks of the user", s.blocksOf(t, user), []storage.UserID{blocked, both, blocking})
	wantList(t, "blocks of one whom it blocks", s.blocksOf(t, blocked), []storage.UserID{user})
	wantList(t, "blocks of one who blocks it", s.blocksOf(t, blocking), []storage.UserID{user})
}

func (s blockLists) OnlyBlocksAreListed(t *testing.T) {
	user, other, ended := s.id(), s.id(), s.id()
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		s.apply(t, side, follow(side, user, other, 1))
		s.apply(t, side, edge(side, user, s.id(), storage.None, at(1)))
		s.apply(t, side, edge(side, user, ended, storage.Blocking, at(1)))
		wantList(t, "blocks", s.blocksOf(t, user), []storage.UserID{ended})
		s.apply(t, side, edge(side, user, ended, storage.None, at(2)))
		wantList(t, "blocks", s.blocksOf(t, user), nil)
	}
	for _, side := range []storage.Side{storage.Requests, storage.Inbox} {
		pair := side.Pair(user, s.id())
		s.apply(t, side, storage.Edge{From: pair.From, To: pair.To, Type: storage.Accepted, UpdateTime: at(3)}) // 2, as a block is
	}
	wantList(t, "blocks", s.blocksOf(t, user), nil)
}

// block writes both rows of a block.
func (s blockLists) block(t *testing.T, from, to storage.UserID) {
	t.Helper()
	row := storage.Edge{From: from, To: to, Type: storage.Blocking, UpdateTime: at(1)}
	s.apply(t, storage.Forward, row)
	s.apply(t, storage.Inverse, row)
}

func (s blockLists) blocksOf(t *testing.T, user storage.UserID) []storage.UserID {
	t.Helper()
	return found(t, storage.BlockLookups.Read(t.Context(), s.store, user), 1)[0]
}

// count: how many edges there are, up to a bound.
type count struct{ *harness }

func (s count) OnlyTheTypeOfTheOwnerIsCounted(t *testing.T, side storage.Side) {
	owner, other := s.id(), s.id()
	for i, kind := range typesOf(side) {
		for range i + 1 {
			s.apply(t, side, edge(side, owner, s.id(), kind, at(1)), edge(side, other, s.id(), kind, at(1)))
		}
	}
	for i, kind := range typesOf(side) {
		if kind != storage.None { // 0 stands for 1
			wantEqual(t, "edges of a type", s.count(t, side, storage.EdgeCountQuery{Owner: owner, Type: kind, Limit: 100}), i+1)
		}
	}
	wantEqual(t, "edges of type 0", s.count(t, side, storage.EdgeCountQuery{Owner: owner, Limit: 100}), 2)
	wantEqual(t, "edges of nobody", s.count(t, side, storage.EdgeCountQuery{Owner: s.id(), Limit: 100}), 0)
}

func (s count) OnlyNewerEdgesAreCounted(t *testing.T, side storage.Side) {
	owner := s.id()
	for n := range 5 {
		s.apply(t, side, follow(side, owner, s.id(), 10+n))
	}
	for since, want := range map[storage.Micros]int{0: 5, at(9): 5, at(10): 4, at(12): 2, at(14): 0, at(15): 0} {
		wantEqual(t, "newer edges", s.count(t, side, storage.EdgeCountQuery{Owner: owner, Since: since, Limit: 100}), want)
	}
}

func (s count) TheLimitBoundsTheNumber(t *testing.T, side storage.Side) {
	owner := s.id()
	for n := range 5 {
		s.apply(t, side, follow(side, owner, s.id(), n))
	}
	for limit, want := range map[int]int{1: 1, 4: 4, 5: 5, 6: 5} {
		wantEqual(t, "edges", s.count(t, side, storage.EdgeCountQuery{Owner: owner, Limit: limit}), want)
	}
}

func (s count) count(t *testing.T, side storage.Side, q storage.EdgeCountQuery) int {
	t.Helper()
	return found(t, storage.EdgeCountLookups[side].Read(t.Context(), s.store, q), 1)[0]
}
