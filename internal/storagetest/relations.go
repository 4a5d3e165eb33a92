package storagetest

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
	"kith/storage/sides"
)

// relations: edges of declared kinds, with details, and counts of each kind.
type relations struct{ *harness }

const (
	oneKind     = int64(101)
	anotherKind = int64(102)
)

// A relation keeps its time while its detail changes. The same change a second time changes nothing.
func (s relations) ItIsMadeChangedAndEnded(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	pair := storage.Pair{From: users[0], To: users[1], Item: oneKind}
	until := storage.DetailChange{EndsAt: at(500), Attributes: values("a", "1")}
	for n, want := range []struct {
		change  storage.EdgeChange
		row     storage.Edge
		changed bool
	}{
		{s.end(pair, 1), pair.Edge(storage.None, 0), false},
		{s.make(pair, 5, storage.DetailChange{}), pair.Edge(storage.Related, at(5)), true},
		{s.make(pair, 7, storage.DetailChange{}), pair.Edge(storage.Related, at(5)), false},
		{s.make(pair, 9, until), pair.Edge(storage.Related, at(5)), true},
		{s.make(pair, 11, until), pair.Edge(storage.Related, at(5)), false},
		{s.end(pair, 3), pair.Edge(storage.None, at(6)), true},
		{s.end(pair, 9), pair.Edge(storage.None, at(6)), false},
		{s.make(pair, 8, until), pair.Edge(storage.Related, at(8)), true},
	} {
		got := found(t, s.change(t, pair.From, storage.ChangeOptions{}, want.change), 1)[0]
		kept := want.changed && want.change.Detail.EndsAt != 0 && want.row.UpdateTime == at(5)
		check.That(t, got.Row == want.row && got.Changed == want.changed && got.Kept == kept && !got.Inverse && len(got.Also) == 0, "%d: %+v, want %+v", n, got, want)
		if want.changed {
			wantWritten(t, "written", got.Written(), []storage.Written{{Row: storage.Row{Side: storage.Relations, Edge: want.row}}})
		}
	}
	wantEqual(t, "row", s.edgeOf(t, storage.Relations, pair), pair.Edge(storage.Related, at(8)))
	other := pair
	other.Item = anotherKind
	wantMissing(t, storage.EdgeLookups[storage.Relations].Read(t.Context(), s.store, other), 1)
	wantMissing(t, storage.EdgeLookups[storage.RelationInbox].Read(t.Context(), s.store, pair), 1)
	wantEqual(t, "detail", found(t, storage.DetailLookups.Read(t.Context(), s.store, pair), 1)[0], storage.Detail{EndsAt: at(500), Attributes: `{"a":1}`})
	found(t, s.change(t, pair.From, storage.ChangeOptions{}, s.end(pair, 20)), 1)
	wantMissing(t, storage.DetailLookups.Read(t.Context(), s.store, pair, other), 2)
}

// A page of whichever rows has those that have ended, so that it ends however many they are.
func (s relations) AllRowsAreReadWithThoseThatHaveEnded(t *testing.T) {
	for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
		owner := s.id()
		var rows []storage.Edge
		for i, peer := range s.sortedIDs(4) {
			for _, kind := range []int64{oneKind, anotherKind} {
				pair := side.Pair(owner, peer)
				pair.Item = kind
				rows = append(rows, pair.Edge(storage.EdgeType(i/3), at(i)))
			}
		}
		s.apply(t, side, rows...)
		for _, limit := range []int{1, 3, 100} {
			var got []storage.Edge
			q := storage.RowsQuery{Side: side, Owner: owner, Limit: limit, Any: true, Skip: 1}
			for page := s.rows(t, q); len(page) > 0 && len(got) <= len(rows); page = s.rows(t, q) {
				got = append(got, page...)
				last := page[len(page)-1]
				q.After, q.Item = side.Peer(last.Pair()), last.Item
			}
			wantList(t, "rows of "+side.String(), got, rows)
		}
	}
}

// Every kind is counted, at both ends, and bounded by itself.
func (s relations) KindsAreCountedAndBounded(t *testing.T) {
	users := idsOf(s.newUsers(t, 6))
	var changes []storage.EdgeChange
	for i, to := range users[1:] {
		changes = append(changes, s.make(storage.Pair{From: users[0], To: to, Item: oneKind}, i, storage.DetailChange{}))
	}
	o := storage.ChangeOptions{MaxItems: 4, Inverse: true}
	results := s.change(t, users[0], o, changes...)
	found(t, results[:4], 4)
	wantIs(t, results[4].Err, storage.ErrLimitReached)
	found(t, s.change(t, users[0], o, s.make(storage.Pair{From: users[0], To: users[1], Item: anotherKind}, 9, storage.DetailChange{})), 1)
	for _, r := range results[:4] {
		if !r.Value.Inverse {
			s.apply(t, storage.RelationInbox, r.Value.Row)
		}
	}
	s.wantKind(t, users[0], oneKind, storage.KindCount{Outgoing: 4})
	s.wantKind(t, users[0], anotherKind, storage.KindCount{Outgoing: 1})
	s.wantKind(t, users[1], oneKind, storage.KindCount{Incoming: 1})
	s.wantKind(t, users[5], oneKind, storage.KindCount{})
	found(t, s.change(t, users[0], o, s.end(storage.Pair{From: users[0], To: users[1], Item: oneKind}, 30), changes[4]), 2)
	s.wantKind(t, users[0], oneKind, storage.KindCount{Outgoing: 4})
	s.wantAllRight(t)
}

// What a relation leads to need not be a user: its end has counts of its own.
func (s relations) TheyLeadAnywhere(t *testing.T) {
	user, show := s.newUsers(t, 1)[0].ID, storage.Foreign(7)
	pair := storage.Pair{From: user, To: show, Item: oneKind}
	row := found(t, s.change(t, user, storage.ChangeOptions{}, s.make(pair, 5, storage.DetailChange{})), 1)[0].Row
	s.apply(t, storage.RelationInbox, row)
	s.wantKind(t, show, oneKind, storage.KindCount{Incoming: 1})
	wantList(t, "page", s.page(t, storage.RelationInbox, storage.PageQuery{Owner: show, Item: oneKind, Limit: 5}), []storage.Edge{row})
	s.wantAllRight(t)
}

func (s relations) ABlockForbidsThoseOfPeace(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	s.apply(t, storage.Forward, storage.Edge{From: users[0], To: users[1], Type: storage.Blocking, UpdateTime: at(1)})
	make := s.make(storage.Pair{From: users[0], To: users[1], Item: oneKind}, 5, storage.DetailChange{})
	wantIs(t, s.change(t, users[0], storage.ChangeOptions{Peace: true}, make)[0].Err, storage.ErrForbidden)
	found(t, s.change(t, users[0], storage.ChangeOptions{}, make), 1)
}

// So are pages of those who favorite one post.
func (s relations) PagesAreOfOneKind(t *testing.T) {
	for _, side := range []storage.Side{storage.Relations, storage.RelationInbox, storage.FavoriteInbox} {
		owner := s.id()
		var rows []storage.Edge
		for i, peer := range s.ids(9) {
			for _, item := range []int64{oneKind, anotherKind} {
				pair := side.Pair(owner, peer)
				pair.Item = item
				row := pair.Edge(storage.Related, at(i/2))
				if s.apply(t, side, row); item == oneKind {
					rows = append(rows, row)
				}
			}
		}
		position := func(e storage.Edge) storage.Position { return side.Position(e) }
		slices.SortFunc(rows, func(a, b storage.Edge) int { return position(a).Compare(position(b)) })
		q := storage.PageQuery{Owner: owner, Item: oneKind, Limit: 4}
		wantList(t, "first", s.page(t, side, q), rows[:4])
		q.Backward = true
		wantList(t, "last", s.page(t, side, q), rows[5:])
		q.Before = position(rows[5])
		wantList(t, "before", s.page(t, side, q), rows[1:5])
		wantList(t, "next", s.page(t, side, storage.PageQuery{Owner: owner, Item: oneKind, Limit: 4, After: position(rows[3])}), rows[4:8])
	}
}

// A relation ends once its time has come, and not if that has been changed meanwhile.
func (s relations) TheyEndByThemselves(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	var pairs []storage.Pair
	for i, to := range s.ids(3) {
		pair := storage.Pair{From: user, To: to, Item: oneKind}
		pairs = append(pairs, pair)
		found(t, s.change(t, user, storage.ChangeOptions{}, s.make(pair, 1, storage.DetailChange{EndsAt: at(100 + 10*i)})), 1)
	}
	for limit := 1; limit <= 2; limit++ {
		wantList(t, "due", s.due(t, user, limit, 110), []storage.RelationRow{
			{Edge: pairs[0].Edge(storage.Related, at(1)), Detail: storage.Detail{EndsAt: at(100)}},
			{Edge: pairs[1].Edge(storage.Related, at(1)), Detail: storage.Detail{EndsAt: at(110)}},
		})
	}
	longer := s.make(pairs[1], 90, storage.DetailChange{EndsAt: at(500)})
	found(t, s.change(t, user, storage.ChangeOptions{}, longer), 1)
	for i, pair := range pairs {
		end := s.end(pair, 110)
		end.IfDue = true
		wantEqual(t, "ended", found(t, s.change(t, user, storage.ChangeOptions{}, end), 1)[0].Changed, i == 0)
	}
}

// due reads the relations of a user that come to an end, page by page.
func (s relations) due(t *testing.T, user storage.UserID, limit, upTo int) (due []storage.RelationRow) {
	t.Helper()
	for shard := range s.shards() {
		query := storage.ShardQuery[storage.RelationRow]{Shard: shard, Until: at(upTo), Limit: limit}
		for more, n := true, 0; more && n < many; n++ {
			page := one(t, s.harness, storage.DueLookups, query)
			wantEqual(t, "more than the limit", len(page) > limit, false)
			if more = len(page) == limit; more {
				query.After = page[limit-1]
			}
			for _, r := range page {
				if r.From == user || r.From == 0 {
					due = append(due, r)
				}
			}
		}
	}
	return due
}

// One edge takes the place of another, in one transaction: if it cannot be made, the other one stays.
func (s relations) AChangeGoesWithTheOneBefore(t *testing.T) {
	user, ends := s.newUsers(t, 1)[0].ID, s.ids(2)
	of := func(kind int64, end int) storage.Pair { return storage.Pair{From: user, To: ends[end], Item: kind} }
	instead := func(kind, other int64, end, n int) []storage.Result[storage.Changed] {
		ended := s.end(of(other, end), n)
		ended.With = true
		return s.change(t, user, storage.ChangeOptions{MaxItems: 1}, s.make(of(kind, end), n, storage.DetailChange{}), ended)
	}
	for i, changed := range []bool{false, true} {
		results := found(t, instead([]int64{oneKind, anotherKind}[i], []int64{anotherKind, oneKind}[i], 0, 5+i), 2)
		wantEqual(t, "made", results[0].Changed, true)
		wantEqual(t, "ended", results[1].Changed, changed)
	}
	found(t, s.change(t, user, storage.ChangeOptions{}, s.make(of(oneKind, 1), 7, storage.DetailChange{})), 1)
	for _, r := range instead(anotherKind, oneKind, 1, 9) {
		wantIs(t, r.Err, storage.ErrLimitReached)
	}
	wantEqual(t, "the one that stays", s.edgeOf(t, storage.Relations, of(oneKind, 1)).Type, storage.Related)
	s.wantKind(t, user, oneKind, storage.KindCount{Outgoing: 1})
	s.wantKind(t, user, anotherKind, storage.KindCount{Outgoing: 1})
}

// For imports.
func (s relations) DetailsAreRestoredOnce(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	pair := storage.Pair{From: user, To: s.id(), Item: oneKind}
	s.apply(t, storage.Relations, pair.Edge(storage.Related, at(5)))
	missing := storage.Pair{From: user, To: s.id(), Item: oneKind}
	want := storage.Detail{EndsAt: at(9), Attributes: "x"}
	restore := func(pair storage.Pair, time int, detail storage.Detail) storage.Result[bool] {
		row := storage.RelationRow{Edge: pair.Edge(storage.Related, at(time)), Detail: detail}
		return s.store.Restore(t.Context(), storage.Restored{Details: []storage.RelationRow{row}})[0]
	}
	wantEqual(t, "of another time", restore(pair, 6, storage.Detail{Attributes: "y"}), storage.Result[bool]{})
	wantEqual(t, "restored", restore(pair, 5, want), storage.Result[bool]{Value: true, Found: true})
	wantEqual(t, "missing", restore(missing, 5, want), storage.Result[bool]{})
	wantEqual(t, "again", restore(pair, 5, storage.Detail{Attributes: "y"}), storage.Result[bool]{Found: true})
	wantEqual(t, "detail", found(t, storage.DetailLookups.Read(t.Context(), s.store, pair), 1)[0], want)
}

// Many users relate to few others at once, and propagate their changes.
func (s relations) CountsAreExactWhereManyWrite(t *testing.T) {
	users := idsOf(s.newUsers(t, workers))
	together(func(worker int) {
		for i := range 12 {
			pair := storage.Pair{From: users[worker], To: users[(worker+1+i%3)%workers], Item: oneKind + int64(i%2)}
			change := s.make(pair, i, storage.DetailChange{})
			if i%4 == 3 {
				change = s.end(pair, i)
			}
			r := s.store.ChangeEdges(t.Context(), storage.Relations, users[worker], []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: worker%2 == 0})[0]
			if r.Err != nil {
				t.Error(r.Err)
				return
			}
			if r.Value.Changed && !r.Value.Inverse {
				noErrors(t, s.store.Apply(t.Context(), storage.RelationInbox, []storage.Edge{r.Value.Row, r.Value.Row}, storage.IfNewer), 2)
			}
		}
	})
	s.wantAllRight(t)
}

// A count that is wrong is found and set right.
func (s relations) RepairsAreCounted(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	r := part[sides.Repairer](t, s.harness)
	want := storage.Pair{From: users[0], To: users[1], Item: oneKind}.Edge(storage.Related, at(5))
	done := found(t, r.RepairInverse(t.Context(), []sides.Repair{{Side: storage.Relations, Pair: want.Pair(), Want: want}}), 1)[0]
	wantEqual(t, "done", done.Changed, true)
	wantEqual(t, "row", s.edgeOf(t, storage.RelationInbox, want.Pair()), want)
	s.wantKind(t, users[1], oneKind, storage.KindCount{Incoming: 1})
	found(t, r.RecountItems(t.Context(), storage.RelationInbox, []storage.PostID{{Author: users[1], Number: oneKind}}), 1)
	s.wantKind(t, users[1], oneKind, storage.KindCount{Incoming: 1})
	s.wantAllRight(t)
}

func (s relations) make(pair storage.Pair, n int, d storage.DetailChange) storage.EdgeChange {
	return storage.EdgeChange{To: pair.To, Item: pair.Item, Type: storage.Related, At: at(n), Detail: d}
}

func (s relations) end(pair storage.Pair, n int) storage.EdgeChange {
	return storage.EdgeChange{To: pair.To, Item: pair.Item, Type: storage.None, At: at(n)}
}

func (s relations) change(t *testing.T, user storage.UserID, o storage.ChangeOptions, changes ...storage.EdgeChange) []storage.Result[storage.Changed] {
	t.Helper()
	return s.store.ChangeEdges(t.Context(), storage.Relations, user, changes, o)
}

func (s relations) wantKind(t *testing.T, owner storage.UserID, kind int64, want storage.KindCount) {
	t.Helper()
	of := []storage.OwnerKind{{Owner: owner, Kind: kind}}
	wantEqual(t, "count of a kind", found(t, storage.KindLookups.Read(t.Context(), s.store, of...), 1)[0], want)
}

func (s relations) shards() int {
	if c, ok := s.store.(sides.Comparer); ok {
		return c.Shards()
	}
	return 1
}

// wantAllRight checks that no count of a kind is wrong, where the store knows.
func (s relations) wantAllRight(t *testing.T) {
	t.Helper()
	c, ok := s.store.(sides.Comparer)
	if !ok {
		return
	}
	for ordinal := range c.Shards() {
		for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
			wrong, err := c.WrongItemCounts(t.Context(), side, ordinal, everybody)
			check.That(t, err == nil && len(wrong) == 0, "counts of %s on shard %d: %+v, %v", side, ordinal, wrong, err)
		}
	}
}
