package storagetest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// comparer: how the two sides of all edges are compared, for stores that can compare them. The store
// also has rows of other tests, so only the difference counts that a test's own rows make. Wrong counts
// and forbidden follows cannot be made through the contract; the engines' own tests have them.
type comparer struct{ *harness }

func (comparer) sides() []storage.Side { return storage.AllSides[:] }

var everybody = sides.OwnerRange{UpTo: 1<<63 - 1}

func (s comparer) OwnersComeInOrderOnTheirShard(t *testing.T) {
	c := part[sides.Comparer](t, s.harness)
	users := idsOf(s.newUsers(t, 30))
	shards := storage.NewShardMap(c.Shards())
	for ordinal := range c.Shards() {
		var all, own []storage.UserID
		for id := s.nextOwner(t, ordinal, 0, 1); id != 0; id = s.nextOwner(t, ordinal, id, 1) {
			all = append(all, id)
		}
		for _, id := range users {
			if shards.Of(id) == ordinal {
				own = append(own, id)
			}
		}
		slices.Sort(own)
		wantList(t, "owners", slices.DeleteFunc(slices.Clone(all), func(id storage.UserID) bool { return !slices.Contains(users, id) }), own)
		check.That(t, slices.IsSorted(all), "owners of shard %d: %v", ordinal, all)
		for n := 1; n <= len(all)+1; n++ {
			want := storage.UserID(0)
			if n <= len(all) {
				want = all[n-1]
			}
			wantEqual(t, "owner", s.nextOwner(t, ordinal, 0, n), want)
		}
	}
}

// Rows are counted in the order of their owners, who need not be users.
func (s comparer) RowsLeadToTheirOwners(t *testing.T, side storage.Side) {
	c := part[sides.Comparer](t, s.harness)
	for rows := 1; rows <= 3; rows++ {
		owner := s.id()
		for row := range rows {
			s.apply(t, side, follow(side, owner, s.id(), row))
		}
		shard := storage.NewShardMap(c.Shards()).Of(owner)
		for n := 1; n <= rows+1; n++ {
			got, ok, err := c.OwnerOfRow(t.Context(), side, shard, owner-1, n)
			check.That(t, err == nil && (n > rows || ok) && (got == owner) == (n <= rows) && (!ok || got >= owner), "row %d of %d: of %d, %v, %v, want %d", n, rows, got, ok, err, owner)
		}
		got, ok, err := c.OwnerOfRow(t.Context(), side, shard, owner, 1)
		check.That(t, err == nil && ok == (got > owner), "behind %d: %d, %v, %v", owner, got, ok, err)
	}
	for shard := range c.Shards() {
		_, ok, err := c.OwnerOfRow(t.Context(), side, shard, everybody.UpTo, 1)
		check.That(t, err == nil && !ok, "behind all on shard %d: %v, %v", shard, ok, err)
	}
}

func (s comparer) DigestsAreTheSumsOfTheRows(t *testing.T, side storage.Side) {
	for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 7}} {
		odd := sides.Choose(sides.Classes, oddBelow(sides.Classes))
		for _, classes := range []storage.Choice{nil, odd} {
			before := s.digests(t, side, everybody, cut, classes)
			for _, e := range s.comparedRows(t, side) {
				if g := cut.Group(e.Pair()); classes == nil || classes.Has(g/cut.Parts) {
					before[g] = before[g].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
				}
			}
			got := s.digests(t, side, everybody, cut, classes)
			check.That(t, maps.Equal(got, before), "%d parts, some classes: %v: %d groups, want %d", cut.Parts, classes != nil, len(got), len(before))
		}
	}
}

// Digests of owners are of what there is: no row of type none counts.
func (s comparer) OwnerDigestsAreOfWhatThereIs(t *testing.T) {
	c := part[sides.Comparer](t, s.harness)
	eachTable(t, func(t *testing.T, side storage.Side) {
		of := func(ranges ...sides.OwnerRange) map[storage.UserID]sides.Digest {
			sum := make(map[storage.UserID]sides.Digest)
			for ordinal := range c.Shards() {
				for _, owners := range ranges {
					digests, err := c.OwnerDigests(t.Context(), side, ordinal, owners)
					must.OK(t, err)
					for owner, d := range digests {
						sum[owner] = sum[owner].Plus(d)
					}
				}
			}
			return sum
		}
		want := of(everybody)
		rows := s.comparedRows(t, side)
		for _, e := range rows {
			if owner := side.Owner(e.Pair()); e.Type != storage.None {
				want[owner] = want[owner].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
			}
		}
		middle := side.Owner(rows[15].Pair())
		for _, got := range []map[storage.UserID]sides.Digest{of(everybody), of(sides.OwnerRange{UpTo: middle}, sides.OwnerRange{After: middle, UpTo: everybody.UpTo})} {
			wantEqual(t, "the digests are those of the rows", maps.Equal(got, want), true)
		}
	})
}

// A tombstone at time 0 counts as no row.
func (s comparer) ATombstoneAtTimeZeroIsNoRow(t *testing.T, side storage.Side) {
	before := s.digests(t, side, everybody, sides.Cut{Parts: 1}, nil)
	s.apply(t, side, edge(side, s.id(), s.id(), storage.None, 0))
	check.That(t, maps.Equal(s.digests(t, side, everybody, sides.Cut{Parts: 1}, nil), before), "digests have changed")
}

func (s comparer) ARangeEndsWithItsLastOwner(t *testing.T, side storage.Side) {
	owners := s.sortedIDs(3)
	for i, owner := range owners {
		s.apply(t, side, follow(side, owner, s.id(), i))
	}
	of := func(after, upTo storage.UserID) (own int) {
		pairs := map[storage.UserID]bool{}
		s.groupRows(t, side, sides.OwnerRange{After: after, UpTo: upTo}, sides.Cut{Parts: 1}, nil, func(e storage.Edge) {
			pairs[side.Owner(e.Pair())] = true
		})
		for _, owner := range owners {
			if pairs[owner] {
				own++
			}
		}
		return own
	}
	wantEqual(t, "owners", of(owners[0], owners[2]), 2)
	wantEqual(t, "owners", of(owners[0]-1, owners[2]-1), 2)
	wantEqual(t, "owners", of(owners[2], everybody.UpTo), 0)

	rows := func(after, upTo storage.UserID) (n int64) {
		for _, d := range s.digests(t, side, sides.OwnerRange{After: after, UpTo: upTo}, sides.Cut{Parts: 1}, nil) {
			n += d.Rows
		}
		return n
	}
	wantEqual(t, "rows", rows(0, owners[1])+rows(owners[1], everybody.UpTo), rows(0, everybody.UpTo))
}

// If buckets are chosen, only the owners in them are compared.
func (s comparer) OtherBucketsAreLeftOut(t *testing.T, side storage.Side) {
	owner, other, peer := s.id(), s.id(), s.id()
	for other.Bucket() == owner.Bucket() {
		other = s.id()
	}
	s.apply(t, side, follow(side, owner, peer, 1), follow(side, other, peer, 1))
	for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 7}} {
		got := map[storage.UserID]bool{}
		only := everybody
		only.Buckets = sides.Choose(storage.Buckets, []int{owner.Bucket()})
		s.groupRows(t, side, only, cut, nil, func(e storage.Edge) { got[side.Owner(e.Pair())] = true })
		wantEqual(t, "an owner in the bucket", got[owner], true)
		wantEqual(t, "another", got[other], false)
		all := s.digests(t, side, only, cut, nil)
		only.Buckets = bytes.Repeat([]byte{'1'}, storage.Buckets)
		only.Buckets[owner.Bucket()] = '0'
		for group, d := range s.digests(t, side, only, cut, nil) {
			all[group] = all[group].Plus(d)
		}
		wantEqual(t, "both parts are the whole", maps.Equal(all, s.digests(t, side, everybody, cut, nil)), true)
	}
}

func (s comparer) RowsAreThoseOfTheGroups(t *testing.T, side storage.Side) {
	for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 7}} {
		rows := s.comparedRows(t, side)
		odd := sides.Choose(cut.Groups(), oddBelow(cut.Groups()))
		got := map[storage.Edge]int{}
		s.groupRows(t, side, everybody, cut, odd, func(e storage.Edge) {
			got[e]++
			must.That(t, odd.Has(cut.Group(e.Pair())), "%+v is of group %d", e, cut.Group(e.Pair()))
		})
		for _, e := range rows {
			want := 0
			if odd.Has(cut.Group(e.Pair())) {
				want = 1
			}
			wantEqual(t, "times that a row comes", got[e], want)
		}
	}
}

func (s comparer) NothingIsWrongThatIsRight(t *testing.T) {
	c := part[sides.Comparer](t, s.harness)
	users := idsOf(s.newUsers(t, 4))
	a, b, blocked := users[0], users[1], users[2]
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		s.apply(t, side, follow(side, a, b, 1), follow(side, b, a, 2))
		s.apply(t, side, storage.Edge{From: blocked, To: a, Type: storage.Following, UpdateTime: at(1)})
	}
	s.apply(t, storage.Inverse, storage.Edge{From: a, To: blocked, Type: storage.Blocking, UpdateTime: at(9)})
	for ordinal := range c.Shards() {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			wrong, err := c.WrongCounts(t.Context(), side, ordinal, everybody)
			check.That(t, err == nil && len(wrong) == 0, "counts on shard %d: %v, %v", ordinal, wrong, err)
		}
		wrong, err := c.WrongFriends(t.Context(), ordinal, everybody)
		check.That(t, err == nil && len(wrong) == 0, "friends on shard %d: %v, %v", ordinal, wrong, err)
		follows, err := c.ForbiddenFollows(t.Context(), ordinal, everybody)
		check.That(t, err == nil && len(follows) == 0, "forbidden on shard %d: %v, %v", ordinal, follows, err)
	}
}

// comparedRows writes rows of every type, some of them with the same time.
func (s comparer) comparedRows(t *testing.T, side storage.Side) (rows []storage.Edge) {
	t.Helper()
	for i := range 30 {
		rows = append(rows, edge(side, s.id(), s.id(), typesOf(side)[i%3], at(i/2)))
	}
	s.apply(t, side, rows...)
	return rows
}

// digests adds up the digests of all shards.
func (s comparer) digests(t *testing.T, side storage.Side, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) map[int]sides.Digest {
	t.Helper()
	c := part[sides.Comparer](t, s.harness)
	sum := make(map[int]sides.Digest)
	for ordinal := range c.Shards() {
		digests, err := c.Digests(t.Context(), side, ordinal, owners, cut, classes)
		must.OK(t, err)
		for g, d := range digests {
			sum[g] = sum[g].Plus(d)
		}
	}
	return sum
}

// groupRows reads the rows of all shards; groups may be nil, for all groups. Tombstones at time 0 count
// as no rows.
func (s comparer) groupRows(t *testing.T, side storage.Side, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) {
	t.Helper()
	c := part[sides.Comparer](t, s.harness)
	if groups == nil {
		groups = bytes.Repeat([]byte{'1'}, cut.Groups())
	}
	for ordinal := range c.Shards() {
		err := c.GroupRows(t.Context(), side, ordinal, owners, cut, groups, func(e storage.Edge) {
			if e.Type != storage.None || e.UpdateTime != 0 {
				row(e)
			}
		})
		must.OK(t, err)
	}
}

// nextOwner returns 0 if there are fewer owners.
func (s comparer) nextOwner(t *testing.T, ordinal int, after storage.UserID, users int) storage.UserID {
	t.Helper()
	id, ok, err := part[sides.Comparer](t, s.harness).NextOwner(t.Context(), ordinal, after, users)
	must.That(t, err == nil && ok == (id != 0) && (!ok || id > after), "owner %d behind %d on shard %d: %d, %v, %v", users, after, ordinal, id, ok, err)
	return id
}

func oddBelow(n int) (odd []int) {
	for i := 1; i < n; i += 2 {
		odd = append(odd, i)
	}
	return odd
}
