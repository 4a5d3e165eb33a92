package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// applyCounts: how counts and versions follow from the edges written.
type applyCounts struct{ *harness }

func (applyCounts) sides() []storage.Side { return followSides }

func (s applyCounts) CountsFollowTheType(t *testing.T) {
	counted := func(kind storage.EdgeType) int64 {
		if kind == storage.Following {
			return 1
		}
		return 0
	}
	eachFollowSide(t, func(t *testing.T, side storage.Side) {
		for _, from := range allTypes {
			for _, to := range allTypes {
				owner, peer := s.newUsers(t, 1)[0].ID, s.id()
				s.apply(t, side, edge(side, owner, peer, from, at(1)))
				what := fmt.Sprintf("count after type %d", from)
				wantEqual(t, what, s.countsOf(t, owner).Of(side), counted(from))
				s.apply(t, side, edge(side, owner, peer, to, at(2)))
				wantEqual(t, fmt.Sprintf("%s and %d", what, to), s.countsOf(t, owner).Of(side), counted(to))
			}
		}
	})
}

func (s applyCounts) IgnoredEdgesCountNothing(t *testing.T, side storage.Side) {
	for _, kind := range allTypes {
		owner, peer := s.newUsers(t, 1)[0].ID, s.id()
		s.apply(t, side, edge(side, owner, peer, kind, at(5)))
		before := s.countsOf(t, owner)
		for _, other := range allTypes {
			s.apply(t, side, edge(side, owner, peer, other, at(4)), edge(side, owner, peer, other, at(5)))
			s.applyRule(t, side, storage.IfAbsent, edge(side, owner, peer, other, at(6)))
		}
		wantEqual(t, fmt.Sprintf("counts with type %d", kind), s.countsOf(t, owner), before)
	}
}

func (s applyCounts) ATombstoneForNothingCountsNothing(t *testing.T, side storage.Side) {
	owner, peers := s.newUsers(t, 1)[0].ID, s.ids(2)
	s.apply(t, side, follow(side, owner, peers[0], 1))
	s.apply(t, side, edge(side, owner, peers[1], storage.None, at(5)))
	wantEqual(t, "count", s.countsOf(t, owner).Of(side), 1)
	// The start arrives after the end of the same edge.
	s.apply(t, side, follow(side, owner, peers[1], 4))
	wantEqual(t, "count after the late follow", s.countsOf(t, owner).Of(side), 1)
}

func (s applyCounts) EdgesOfOnePairAreCountedOnce(t *testing.T, side storage.Side) {
	owner, p := s.newUsers(t, 1)[0].ID, s.ids(3)
	s.apply(t, side,
		follow(side, owner, p[0], 1), follow(side, owner, p[0], 1), follow(side, owner, p[0], 2),
		follow(side, owner, p[1], 1), edge(side, owner, p[1], storage.None, at(2)),
		edge(side, owner, p[2], storage.Blocking, at(1)), follow(side, owner, p[2], 2), follow(side, owner, p[2], 3),
	)
	wantEqual(t, "count", s.countsOf(t, owner).Of(side), 2)
	s.applyRule(t, side, storage.IfAbsent, follow(side, owner, p[0], 9), follow(side, owner, p[1], 9))
	wantEqual(t, "count after rows that are there", s.countsOf(t, owner).Of(side), 2)
	fresh := s.id()
	s.applyRule(t, side, storage.IfAbsent, follow(side, owner, fresh, 1), follow(side, owner, fresh, 2))
	wantEqual(t, "count after one more", s.countsOf(t, owner).Of(side), 3)
}

func (s applyCounts) OnlyTheOwnersOwnCountMoves(t *testing.T, side storage.Side) {
	p := idsOf(s.newUsers(t, 2))
	peer := s.countsOf(t, p[1])
	s.apply(t, side, follow(side, p[0], p[1], 1))
	got := s.countsOf(t, p[0])
	wantEqual(t, "count of this side", got.Of(side), 1)
	wantEqual(t, "count of the other side", got.Of(storage.Inverse-side), 0)
	wantEqual(t, "counts of the peer", s.countsOf(t, p[1]), peer)
}

func (s applyCounts) OwnersWithoutAUserAreCounted(t *testing.T, side storage.Side) {
	owner, p := s.id(), s.ids(3)
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, owner), 1)
	s.apply(t, side, follow(side, owner, p[0], 1), follow(side, owner, p[1], 2))
	wantEqual(t, "count", s.countsOf(t, owner).Of(side), 2)
	s.apply(t, side, edge(side, owner, p[0], storage.Blocking, at(3)))
	wantEqual(t, "count after a block", s.countsOf(t, owner).Of(side), 1)

	onlyEnded := s.id()
	s.apply(t, side, edge(side, onlyEnded, p[2], storage.None, at(1)))
	wantEqual(t, "count with a tombstone only", s.countsOf(t, onlyEnded).Of(side), 0)
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, owner, onlyEnded), 2)
}

func (s applyCounts) ManyOwnersAreCountedInOneBatch(t *testing.T, side storage.Side) {
	owners, peers := s.ids(16), s.ids(16)
	var batch []storage.Edge
	for j, peer := range peers {
		for i, owner := range owners { // owners alternate
			kind := allTypes[(i+j)%3]
			batch = append(batch, edge(side, owner, peer, kind, at(i*j)))
		}
	}
	s.apply(t, side, batch...)
	for i, got := range found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), len(owners)) {
		want := int64(0)
		for j := range peers {
			if allTypes[(i+j)%3] == storage.Following {
				want++
			}
		}
		wantEqual(t, fmt.Sprintf("count of owner %d", i), got.Of(side), want)
	}
}

func (s applyCounts) TheVersionRisesWithEveryChange(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		owner, peer := s.newUsers(t, 1)[0].ID, s.id()
		version := s.countsOf(t, owner).Version
		for i, kind := range []storage.EdgeType{
			storage.Following, storage.Following, storage.Blocking, storage.None, storage.None, storage.Following,
		} { // also where the count stays
			s.apply(t, side, edge(side, owner, peer, kind, at(i)))
			now := s.countsOf(t, owner).Version
			check.That(t, now > version, "change %d: version was %d and is %d", i, version, now)
			version = now
		}
	})
}

func (s applyCounts) TheVersionRisesForChangedOwnersOnly(t *testing.T) {
	eachSide(t, func(t *testing.T, side storage.Side) {
		owners, peers := idsOf(s.newUsers(t, 8)), s.ids(2)
		for _, owner := range owners {
			s.apply(t, side, follow(side, owner, peers[0], 5))
		}
		before := found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), len(owners))
		var batch []storage.Edge
		for i, owner := range owners {
			batch = append(batch, follow(side, owner, peers[0], 4)) // older
			if i%3 == 0 {
				batch = append(batch, edge(side, owner, peers[1], storage.Blocking, at(6)))
			}
		}
		s.apply(t, side, batch...)
		for i, now := range found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), len(owners)) {
			check.Equal(t, fmt.Sprintf("the version of owner %d rose", i), now.Version > before[i].Version, i%3 == 0)
			if i%3 != 0 {
				wantEqual(t, "counts", now, before[i])
			}
		}
	})
}
