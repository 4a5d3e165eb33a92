package storagetest

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// lists: everything that a side stores of an owner.
type lists struct{ *harness }

func (lists) sides() []storage.Side { return followSides }

// noTombstones is a time after every end.
const noTombstones = storage.Micros(math.MaxInt64)

func (s lists) WithoutEdgesTheyAreEmpty(t *testing.T, side storage.Side) {
	user, nobody := s.newUsers(t, 1)[0].ID, s.id()
	s.setState(t, user, storage.Deactivated, 1, true) // so that it has a version
	for i, owner := range []storage.UserID{user, nobody} {
		list := s.list(t, side, storage.ListQuery{Owner: owner})
		want := storage.List{}
		if i == 0 {
			want.Version = s.countsOf(t, user).Version
		}
		s.wantIs(t, "list", list, want)
	}
}

func (s lists) FollowsAndBlocksAscend(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(9)
	want := make([]storage.Edge, len(peers))
	for i, k := range []int{3, 0, 7, 8, 1, 5, 2, 6, 4} {
		want[k] = edge(side, owner, peers[k], allTypes[1+k%2], at(i))
		s.apply(t, side, want[k])
	}
	s.wantIs(t, "list", s.list(t, side, storage.ListQuery{Owner: owner, Longest: 100, EndedSince: noTombstones}),
		storage.List{Version: s.countsOf(t, owner).Version, Edges: want})
}

func (s lists) TombstonesAreThereFromATimeOn(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(5)
	all := []storage.Edge{
		edge(side, owner, peers[0], storage.None, at(10)),
		edge(side, owner, peers[1], storage.Following, at(1)),
		edge(side, owner, peers[2], storage.Denied, at(11)),
		edge(side, owner, peers[3], storage.Blocking, at(2)),
		edge(side, owner, peers[4], storage.None, at(12)),
	}
	s.apply(t, side, all...)
	for since, want := range map[storage.Micros][]storage.Edge{
		0:            all,
		at(10):       all,
		at(11):       all[1:],
		at(12):       {all[1], all[3], all[4]},
		at(13):       {all[1], all[3]},
		noTombstones: {all[1], all[3]},
	} {
		wantList(t, "edges", s.list(t, side, storage.ListQuery{Owner: owner, Longest: 100, EndedSince: since}).Edges, want)
	}
}

func (s lists) ALongOneIsNotRead(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(7)
	var want []storage.Edge
	for i, peer := range peers { // three follows
		want = append(want, edge(side, owner, peer, allTypes[[]int{1, 0, 2, 1, 2, 0, 1}[i]], at(i)))
	}
	s.apply(t, side, want...)
	version := s.countsOf(t, owner).Version
	for _, longest := range []int{0, 2, 3, 4, math.MaxInt} {
		list := storage.List{Version: version, Long: true}
		if longest >= 3 {
			list = storage.List{Version: version, Edges: want}
		}
		s.wantIs(t, "list", s.list(t, side, storage.ListQuery{Owner: owner, Longest: longest}), list)
	}
}

func (s lists) TheSidesAreApart(t *testing.T) {
	owner, peers := s.id(), s.ids(3)
	forward := follow(storage.Forward, owner, peers[0], 1)
	inverse := []storage.Edge{follow(storage.Inverse, owner, peers[1], 2), follow(storage.Inverse, owner, peers[2], 3)}
	s.apply(t, storage.Forward, forward)
	s.apply(t, storage.Inverse, inverse...)
	slices.SortFunc(inverse, func(a, b storage.Edge) int { return cmp.Compare(a.From, b.From) })
	version := s.countsOf(t, owner).Version
	q := storage.ListQuery{Owner: owner, Longest: 1}
	s.wantIs(t, "followings", s.list(t, storage.Forward, q), storage.List{Version: version, Edges: []storage.Edge{forward}})
	s.wantIs(t, "followers beyond the bound", s.list(t, storage.Inverse, q), storage.List{Version: version, Long: true})
	q.Longest = 2
	s.wantIs(t, "followers", s.list(t, storage.Inverse, q), storage.List{Version: version, Edges: inverse})
}

func (s lists) QueriesOfOneOwnerMayDiffer(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(3)
	rows := []storage.Edge{
		follow(side, owner, peers[0], 1), edge(side, owner, peers[1], storage.None, at(5)), follow(side, owner, peers[2], 2),
	}
	s.apply(t, side, rows...)
	alive := []storage.Edge{rows[0], rows[2]}
	queries := []storage.ListQuery{
		{Owner: owner, Longest: 2}, {Owner: owner, Longest: 1}, {Owner: owner, Longest: 2, EndedSince: at(6)},
		{Owner: owner, Longest: 2}, {Owner: s.id(), Longest: 2}, {Owner: owner, Longest: 1},
	}
	got := found(t, storage.SnapshotLookups[side].Read(t.Context(), s.store, queries...), len(queries))
	for i, want := range [][]storage.Edge{rows, nil, alive, rows, nil, nil} {
		wantList(t, "edges", got[i].Edges, want)
		wantEqual(t, "long", got[i].Long, queries[i].Longest == 1)
	}
}

func (s lists) ALargeBatchIsAnswered(t *testing.T, side storage.Side) {
	owners, peers := s.ids(many), s.sortedIDs(many)
	want := make([][]storage.Edge, many)
	queries := make([]storage.ListQuery, many)
	for i := range many { // one long list, short lists for some owners, and none for the others
		queries[i] = storage.ListQuery{Owner: owners[i], Longest: many}
		if i%3 > 0 {
			want[i] = []storage.Edge{follow(side, owners[i], peers[i], i)}
		}
		want[0] = append(want[0], follow(side, owners[0], peers[i], i))
	}
	s.apply(t, side, slices.Concat(want...)...)
	for i, got := range found(t, storage.SnapshotLookups[side].Read(t.Context(), s.store, queries...), many) {
		must.That(t, !got.Long && slices.Equal(got.Edges, want[i]), "owner %d: got %d edges, want %d", i, len(got.Edges), len(want[i]))
	}
}

// The tombstones are needed to judge events that come late. The owner has no counts by then.
func (s lists) TheTombstonesOfAnErasedOwnerAreThere(t *testing.T, side storage.Side) {
	owner, peer := s.newUsers(t, 1)[0].ID, s.id()
	ended := edge(side, owner, peer, storage.None, at(5))
	s.apply(t, side, follow(side, owner, peer, 1))
	s.apply(t, side, ended)
	s.setState(t, owner, storage.Deleting, 6, true)
	erase(s).erase(t, owner, 7)
	s.wantIs(t, "list", s.list(t, side, storage.ListQuery{Owner: owner, Longest: 10, EndedSince: at(5)}),
		storage.List{Edges: []storage.Edge{ended}})
}

// A version has exactly one list, whatever is written at the same time, and the list is as long
// as the counts say.
func (s lists) AllIsOfOneMoment(t *testing.T, side storage.Side) {
	const n = 12
	owner, peers := s.id(), s.sortedIDs(n)
	versions := map[int64]storage.List{0: {}}
	seen := whileWriting(t, func(step int) {
		noErrors(t, s.store.Apply(t.Context(), side, []storage.Edge{ // the follows are a range of peers that moves along
			follow(side, owner, peers[step%n], step),
			edge(side, owner, peers[(step+n/3)%n], storage.None, at(step)),
			follow(side, owner, peers[(step+n/2)%n], step),
		}, storage.IfNewer), 3)
		s.note(t, side, owner, peers, versions)
	}, func() (int64, [2]storage.List, bool) {
		q := storage.ListQuery{Owner: owner, Longest: n}
		results := storage.SnapshotLookups[side].Read(t.Context(), s.store, q, storage.ListQuery{Owner: owner, Longest: n / 2})
		if !noErrors(t, results, 2) {
			return 0, [2]storage.List{}, false
		}
		return results[0].Value.Version, [2]storage.List{results[0].Value, results[1].Value}, true
	})
	for version, all := range seen {
		want := versions[version]
		alive := 0
		for _, e := range want.Edges {
			alive += int(e.Type) // each is 0 or 1
		}
		for _, got := range all {
			s.wantIs(t, "list", got[0], want)
			half := got[1]
			check.That(t, half.Version != version || half.Long == (alive > n/2), "of %d follows %d are more than %d: %v", alive, n/2, alive, half.Long)
		}
	}
}

// note remembers what an owner has at its present version, read in other ways. There are no other
// writers.
func (s lists) note(t *testing.T, side storage.Side, owner storage.UserID, peers []storage.UserID, versions map[int64]storage.List) {
	var pairs []storage.Pair
	for _, peer := range peers {
		pairs = append(pairs, side.Pair(owner, peer))
	}
	counts, rows := storage.CountLookups.Read(t.Context(), s.store, owner), storage.EdgeLookups[side].Read(t.Context(), s.store, pairs...)
	if !noErrors(t, counts, 1) || !noErrors(t, rows, len(pairs)) {
		return
	}
	list := storage.List{Version: counts[0].Value.Version}
	for _, row := range rows {
		if row.Found {
			list.Edges = append(list.Edges, row.Value)
		}
	}
	versions[list.Version] = list
}

// list reads one list.
func (s lists) list(t *testing.T, side storage.Side, q storage.ListQuery) storage.List {
	t.Helper()
	return found(t, storage.SnapshotLookups[side].Read(t.Context(), s.store, q), 1)[0]
}

func (s lists) wantIs(t *testing.T, what string, got, want storage.List) {
	t.Helper()
	check.That(t, equalLists(got, want), "%s:\ngot  %+v\nwant %+v", what, got, want)
}

func equalLists(a, b storage.List) bool {
	return a.Version == b.Version && a.Long == b.Long && slices.Equal(a.Edges, b.Edges)
}
