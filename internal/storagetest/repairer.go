package storagetest

import (
	"testing"

	"kith/storage"
	"kith/storage/sides"
)

// repairer: inverse rows are made equal to the forward rows, for stores that can be repaired. Wrong
// counts cannot be made through the contract; the engines' own tests have them.
type repairer struct{ *harness }

func (s repairer) AMissingRowIsWritten(t *testing.T) {
	want := follow(storage.Inverse, s.id(), s.id(), 5)
	s.wantRepaired(t, sides.Repair{Pair: want.Pair(), Want: want}, true)
	wantEqual(t, "row", s.edgeOf(t, storage.Inverse, want.Pair()), want)
	wantEqual(t, "followers", s.countsOf(t, want.To).Follower, 1)
}

func (s repairer) ANewerRowIsWrittenOver(t *testing.T) {
	observed := follow(storage.Inverse, s.id(), s.id(), 50)
	s.apply(t, storage.Inverse, observed)
	want := observed
	want.Type, want.UpdateTime = storage.None, at(40)
	s.wantRepaired(t, sides.Repair{Pair: want.Pair(), Observed: observed, Want: want}, true)
	wantEqual(t, "row", s.edgeOf(t, storage.Inverse, want.Pair()), want)
	wantEqual(t, "followers", s.countsOf(t, want.To).Follower, 0)
}

func (s repairer) ARowThatHasChangedStays(t *testing.T) {
	for _, observed := range []storage.Edge{{}, {Type: storage.Following, UpdateTime: at(49)}, {Type: storage.None, UpdateTime: at(50)}} {
		row := follow(storage.Inverse, s.id(), s.id(), 50)
		s.apply(t, storage.Inverse, row)
		observed.From, observed.To = row.From, row.To
		want := edge(storage.Inverse, row.To, row.From, storage.None, at(60))
		s.wantRepaired(t, sides.Repair{Pair: row.Pair(), Observed: observed, Want: want}, false)
		wantEqual(t, "row", s.edgeOf(t, storage.Inverse, row.Pair()), row)
		wantEqual(t, "followers", s.countsOf(t, row.To).Follower, 1)
	}
}

// If there is no forward row, any event is newer.
func (s repairer) WhatIsTakenAwayMayComeAgain(t *testing.T) {
	row := follow(storage.Inverse, s.id(), s.id(), 50)
	s.apply(t, storage.Inverse, row)
	s.wantRepaired(t, sides.Repair{Pair: row.Pair(), Observed: row, Want: storage.Edge{From: row.From, To: row.To}}, true)
	wantEqual(t, "followers", s.countsOf(t, row.To).Follower, 0)
	again := follow(storage.Inverse, row.To, row.From, 1)
	s.apply(t, storage.Inverse, again)
	wantEqual(t, "row", s.edgeOf(t, storage.Inverse, row.Pair()), again)
	wantEqual(t, "followers", s.countsOf(t, row.To).Follower, 1)
}

func (s repairer) EitherTableNamesTheRelation(t *testing.T) {
	for _, side := range storage.AllSides {
		row := follow(side, s.id(), s.id(), 5)
		s.wantRepaired(t, sides.Repair{Side: side, Pair: row.Pair(), Want: row}, true)
		wantEqual(t, "row of "+side.Replica().String(), s.edgeOf(t, side.Replica(), row.Pair()), row)
		for _, other := range otherThan(side.Replica()) {
			wantMissing(t, storage.EdgeLookups[other].Read(t.Context(), s.store, row.Pair()), 1)
		}
	}
}

func (s repairer) ABlockEndsTheFollowBack(t *testing.T) {
	blocker, blocked := s.id(), s.id()
	back := storage.Edge{From: blocked, To: blocker, Type: storage.Following, UpdateTime: at(1)}
	s.apply(t, storage.Forward, back)
	asked := stateOf(storage.Requests, blocked, blocker, storage.Pending, 6)
	s.apply(t, storage.Requests, asked)
	friend := storage.Edge{From: blocker, To: blocked, Type: storage.Following, UpdateTime: at(2)}
	s.apply(t, storage.Inverse, friend)
	block := storage.Edge{From: blocker, To: blocked, Type: storage.Blocking, UpdateTime: at(5)}
	repaired := s.wantRepaired(t, sides.Repair{Pair: block.Pair(), Observed: friend, Want: block}, true)
	ended := s.edgeOf(t, storage.Forward, back.Pair())
	wantEqual(t, "type of the follow back", ended.Type, storage.None)
	asked.Type, asked.UpdateTime = storage.Cancelled, at(7)
	wantEqual(t, "request", s.edgeOf(t, storage.Requests, asked.Pair()), asked)
	wantWritten(t, "also", repaired.Also, []storage.Written{
		{Row: storage.Row{Side: storage.Forward, Edge: ended}}, {Row: storage.Row{Side: storage.Requests, Edge: asked}}})
	counts := s.countsOf(t, blocked)
	wantEqual(t, "counts", counts, storage.Counts{Version: counts.Version})

	// The second time there is nothing to end.
	repaired = s.wantRepaired(t, sides.Repair{Pair: block.Pair(), Observed: block, Want: block}, true)
	wantWritten(t, "also", repaired.Also, nil)
	wantEqual(t, "row", s.edgeOf(t, storage.Inverse, block.Pair()), block)
}

func (s repairer) AnAcceptanceMakesTheFollow(t *testing.T) {
	asker, asked := s.id(), s.id()
	s.apply(t, storage.Inverse, follow(storage.Inverse, asked, asker, 1))
	accepted := stateOf(storage.Inbox, asked, asker, storage.Accepted, 5)
	missing := sides.Repair{Side: storage.Inbox, Pair: accepted.Pair(), Want: accepted}
	back := storage.Edge{From: asked, To: asker, Type: storage.Following, UpdateTime: at(5)}
	wantWritten(t, "also", s.wantRepaired(t, missing, true).Also, []storage.Written{{Row: storage.Row{Side: storage.Forward, Edge: back}}})
	wantEqual(t, "row", s.edgeOf(t, storage.Inbox, accepted.Pair()), accepted)
	counts := s.countsOf(t, asked)
	wantEqual(t, "counts", counts, storage.Counts{Following: 1, Follower: 1, Friend: 1, Version: counts.Version})
	s.wantRepaired(t, missing, false) // the row is there by now
}

func (s repairer) FriendsAreCounted(t *testing.T) {
	owner, friend := s.id(), s.id()
	s.apply(t, storage.Forward, follow(storage.Forward, owner, friend, 1))
	row := follow(storage.Inverse, owner, friend, 5)
	s.wantRepaired(t, sides.Repair{Pair: row.Pair(), Want: row}, true)
	wantEqual(t, "friends", s.countsOf(t, owner).Friend, 1)
	s.wantRepaired(t, sides.Repair{Pair: row.Pair(), Observed: row, Want: storage.Edge{From: row.From, To: row.To}}, true)
	wantEqual(t, "friends", s.countsOf(t, owner).Friend, 0)
}

// Many repairs are answered at their indexes, on whatever shards they are.
func (s repairer) EachIsJudgedByItself(t *testing.T) {
	var repairs []sides.Repair
	for i := range 40 {
		row := follow(storage.Inverse, s.id(), s.id(), 5)
		r := sides.Repair{Pair: row.Pair(), Want: row}
		if i%3 == 0 {
			r.Observed = follow(storage.Inverse, row.To, row.From, 4) // this row does not exist
		}
		repairs = append(repairs, r)
	}
	r := part[sides.Repairer](t, s.harness)
	wantEqual(t, "results of no repairs", len(r.RepairInverse(t.Context(), nil)), 0)
	for i, got := range found(t, r.RepairInverse(t.Context(), repairs), len(repairs)) {
		wantEqual(t, "done", got.Changed, i%3 != 0)
		wantFound(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, repairs[i].Pair), i%3 != 0)
	}
}

func (s repairer) ToCountAgainLeavesRightCounts(t *testing.T) {
	r := part[sides.Repairer](t, s.harness)
	a, b, nobody := s.id(), s.id(), s.id()
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		s.apply(t, side, follow(side, a, b, 1), follow(side, b, a, 2))
	}
	ids := []storage.UserID{a, b}
	before := found(t, storage.CountLookups.Read(t.Context(), s.store, ids...), 2)
	found(t, r.Recount(t.Context(), storage.Forward, append(ids, nobody)), 3)
	found(t, r.Recount(t.Context(), storage.Inverse, append(ids, nobody)), 3)
	found(t, r.RecountFriends(t.Context(), append(ids, nobody)), 3)
	wantList(t, "counts", found(t, storage.CountLookups.Read(t.Context(), s.store, ids...), 2), before)
	wantEqual(t, "friends", before[0].Friend, 1)
}

func (s repairer) wantRepaired(t *testing.T, r sides.Repair, done bool) storage.Changed {
	t.Helper()
	got := found(t, part[sides.Repairer](t, s.harness).RepairInverse(t.Context(), []sides.Repair{r}), 1)[0]
	wantEqual(t, "done", got.Changed, done)
	return got
}
