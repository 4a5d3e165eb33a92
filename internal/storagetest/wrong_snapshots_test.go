package storagetest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about what caches keep, and about the list of all users.
var snapshotMistakes = []struct {
	mistake string
	open    func(*oracle.Store) storage.Store
	broken  string
	caught  caught
}{
	{"the list of users ignores its limit", func(s *oracle.Store) storage.Store {
		return wrongUserLists{s, func(after storage.UserID, _ int) (storage.UserID, int) { return after, 1000 }}
	}, "userList/EveryUserIsListedOnceOnItsShard", promiseOnly},
	{"the list of users begins with the last", func(s *oracle.Store) storage.Store {
		return wrongUserLists{s, func(after storage.UserID, limit int) (storage.UserID, int) { return max(after, 1) - 1, limit }}
	}, "userList/EveryUserIsListedOnceOnItsShard", promiseOnly},
	{"any id with counts is a user", func(s *oracle.Store) storage.Store { return countedAreUsers{s} }, "userList/EveryUserIsListedOnceOnItsShard", promiseOnly},

	{"profiles are open to all", profilesWith(func(_ int, p *storage.Result[storage.Profile]) {
		p.Value.User.FollowersVisibility = storage.ToEveryone
	}), "profiles/AUserComesWithItsCounts", promiseOnly},
	{"profiles have no friends", profilesWith(func(_ int, p *storage.Result[storage.Profile]) { p.Value.Counts.Friend = 0 }), "profiles/AUserComesWithItsCounts", historiesToo},
	{"who is no user has no profile", profilesWith(func(_ int, p *storage.Result[storage.Profile]) {
		if !p.Value.Exists {
			*p = storage.Result[storage.Profile]{}
		}
	}), "profiles/OnlyCountsMayBeThere", historiesToo},
	{"nobody has a profile", profilesWith(func(_ int, p *storage.Result[storage.Profile]) { p.Found = p.Err == nil }), "profiles/NobodyIsNotFound", historiesToo},
	{"a profile twice is answered once", func(s *oracle.Store) storage.Store { return profilesOnce{s} }, "profiles/AKeyThatOccursTwiceIsAnsweredTwice", promiseOnly},
	{"the end of a batch has no profiles", profilesWith(func(i int, p *storage.Result[storage.Profile]) {
		if i >= 500 {
			*p = storage.Result[storage.Profile]{}
		}
	}), "profiles/ALargeBatchIsAnswered", promiseOnly},
	{"profiles keep their first version", func(s *oracle.Store) storage.Store {
		return &firstVersions{Store: s, first: map[storage.UserID]int64{}}
	}, "profiles/TheVersionRisesWithEachChange", historiesToo},
	{"profiles are of two moments", func(s *oracle.Store) storage.Store { return profilesOfTwoMoments{s} }, "profiles/AllIsOfOneMoment", lostRace},

	{"who has no edges has no list", listsWith(func(_ storage.Side, _ storage.ListQuery, l *storage.Result[storage.List]) {
		l.Found = l.Found && (l.Value.Long || len(l.Value.Edges) > 0)
	}), "lists/WithoutEdgesTheyAreEmpty", historiesToo},
	{"lists descend", listsWith(func(_ storage.Side, _ storage.ListQuery, l *storage.Result[storage.List]) {
		slices.Reverse(l.Value.Edges)
	}), "lists/FollowsAndBlocksAscend", historiesToo},
	{"blocks are not in lists", listsWith(func(_ storage.Side, _ storage.ListQuery, l *storage.Result[storage.List]) {
		l.Value.Edges = slices.DeleteFunc(l.Value.Edges, func(e storage.Edge) bool { return e.Type == storage.Blocking })
	}), "lists/FollowsAndBlocksAscend", historiesToo},
	{"tombstones begin behind the time", listsWith(func(_ storage.Side, q storage.ListQuery, l *storage.Result[storage.List]) {
		l.Value.Edges = slices.DeleteFunc(l.Value.Edges, func(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime == q.EndedSince })
	}), "lists/TombstonesAreThereFromATimeOn", promiseOnly},
	{"every tombstone is there", listsAsked(func(q *storage.ListQuery) { q.EndedSince = 0 }), "lists/TombstonesAreThereFromATimeOn", historiesToo},
	{"a list that just fits is long", listsAsked(func(q *storage.ListQuery) { q.Longest-- }), "lists/ALongOneIsNotRead", historiesToo},
	{"no list is long", listsAsked(func(q *storage.ListQuery) { q.Longest = 1 << 40 }), "lists/ALongOneIsNotRead", historiesToo},
	{"rows make a list long", listsWith(func(_ storage.Side, q storage.ListQuery, l *storage.Result[storage.List]) {
		if len(l.Value.Edges) > q.Longest {
			l.Value.Long, l.Value.Edges = true, nil
		}
	}), "lists/ALongOneIsNotRead", historiesToo},
	{"followings decide which list is long", func(s *oracle.Store) storage.Store { return longByFollowings{s} }, "lists/TheSidesAreApart", historiesToo},
	{"an owner has one bound", func(s *oracle.Store) storage.Store { return firstBounds{s} }, "lists/QueriesOfOneOwnerMayDiffer", historiesToo},
	{"the end of a batch has no lists", func(s *oracle.Store) storage.Store { return shortLists{s} }, "lists/ALargeBatchIsAnswered", promiseOnly},
	{"an owner without counts has no list", func(s *oracle.Store) storage.Store { return listsOfCounted{s} }, "lists/TheTombstonesOfAnErasedOwnerAreThere", promiseOnly},
	{"lists are of two moments", func(s *oracle.Store) storage.Store { return listsOfTwoMoments{s} }, "lists/AllIsOfOneMoment", lostRace},

	{"packed lists descend", packedWith(func(_ storage.Side, r *storage.Result[[]storage.UserID]) { slices.Reverse(r.Value) }), "packedNeighbours/WhatIsFoundIsTheList", historiesToo},
	{"packed lists are never packed again", func(s *oracle.Store) storage.Store {
		return packedOnce{s, new(sync.Mutex), map[storage.Row][]storage.UserID{}}
	}, "packedNeighbours/WhatIsFoundIsTheList", historiesToo},
	{"a packed list twice is answered once", func(s *oracle.Store) storage.Store { return packedAnsweredOnce{s} }, "packedNeighbours/EachKeyIsAnsweredAtItsIndex", promiseOnly},
	{"empty lists are packed", packedWith(func(side storage.Side, r *storage.Result[[]storage.UserID]) { r.Found = side <= storage.Inverse }), "packedNeighbours/WithoutFollowsThereIsNoList", promiseOnly},
	{"requests are packed", packedWith(func(side storage.Side, r *storage.Result[[]storage.UserID]) {
		r.Found = r.Found || side > storage.Inverse
	}), "packedNeighbours/RequestsAreNotPacked", historiesToo},
	{"packed lists are those of another side", func(s *oracle.Store) storage.Store { return packedOfOther{s} }, "packedNeighbours/WhatIsFoundIsTheList", historiesToo},

	{"ended contexts are served with snapshots", func(s *oracle.Store) storage.Store { return deafSnapshots{s} }, "cancellation/SnapshotsAreRefused", promiseOnly},
}

func init() { wrongStores = append(wrongStores, snapshotMistakes...) }

// pauseBetween is long enough for a write in between.
const pauseBetween = 200 * time.Microsecond

type wrongUserLists struct {
	*oracle.Store
	ask func(after storage.UserID, limit int) (storage.UserID, int)
}

func (s wrongUserLists) UserIDsAfter(ctx context.Context, shard int, after storage.UserID, limit int) ([]storage.UserID, error) {
	after, limit = s.ask(after, limit)
	return s.Store.UserIDsAfter(ctx, shard, after, limit)
}

type countedAreUsers struct{ *oracle.Store }

func (s countedAreUsers) UserIDsAfter(_ context.Context, _ int, after storage.UserID, limit int) ([]storage.UserID, error) {
	var ids []storage.UserID
	for _, counts := range s.Snapshot().Counts {
		if counts.ID > after && len(ids) < limit {
			ids = append(ids, counts.ID)
		}
	}
	return ids, nil
}

// wrongProfiles changes what the store answers.
type wrongProfiles struct {
	*oracle.Store
	change func(i int, p *storage.Result[storage.Profile])
}

func profilesWith(change func(i int, p *storage.Result[storage.Profile])) func(*oracle.Store) storage.Store {
	return func(s *oracle.Store) storage.Store { return wrongProfiles{s, change} }
}

func (s wrongProfiles) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	results := storage.ProfileLookups.Read(ctx, s.Store, ids...)
	for i := range results {
		s.change(i, &results[i])
	}
	return results
}

func (s wrongProfiles) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

type profilesOnce struct{ *oracle.Store }

func (s profilesOnce) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	results := storage.ProfileLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			results[i] = storage.Result[storage.Profile]{}
		}
	}
	return results
}

func (s profilesOnce) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

type firstVersions struct {
	*oracle.Store
	mu    sync.Mutex
	first map[storage.UserID]int64
}

func (s *firstVersions) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := storage.ProfileLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		if _, ok := s.first[id]; !ok {
			s.first[id] = results[i].Value.Counts.Version
		}
		results[i].Value.Counts.Version = s.first[id]
	}
	return results
}

func (s *firstVersions) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	storage.ProfileLookups.Read(ctx, s, ids...) // remembers what is read first
	return storage.CountLookups.Read(ctx, s.Store, ids...)
}

func (s *firstVersions) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

type profilesOfTwoMoments struct{ *oracle.Store }

func (s profilesOfTwoMoments) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	users := storage.UserLookups.Read(ctx, s, ids...)
	time.Sleep(pauseBetween)
	results := storage.ProfileLookups.Read(ctx, s.Store, ids...)
	for i := range results {
		results[i].Value.User = users[i].Value
	}
	return results
}

func (s profilesOfTwoMoments) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

// wrongLists changes what is asked for and what the store answers.
type wrongLists struct {
	*oracle.Store
	ask    func(q *storage.ListQuery)
	change func(side storage.Side, q storage.ListQuery, l *storage.Result[storage.List])
}

func listsWith(change func(side storage.Side, q storage.ListQuery, l *storage.Result[storage.List])) func(*oracle.Store) storage.Store {
	return func(s *oracle.Store) storage.Store { return wrongLists{s, func(*storage.ListQuery) {}, change} }
}

func listsAsked(ask func(q *storage.ListQuery)) func(*oracle.Store) storage.Store {
	return func(s *oracle.Store) storage.Store {
		return wrongLists{s, ask, func(storage.Side, storage.ListQuery, *storage.Result[storage.List]) {}}
	}
}

func (s wrongLists) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	asked := slices.Clone(queries)
	for i := range asked {
		s.ask(&asked[i])
	}
	results := storage.SnapshotLookups[side].Read(ctx, s.Store, asked...)
	for i, q := range queries {
		s.change(side, q, &results[i])
	}
	return results
}

func (s wrongLists) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type longByFollowings struct{ *oracle.Store }

func (s longByFollowings) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	all := slices.Clone(queries)
	for i := range all {
		all[i].Longest = 1 << 40
	}
	results := storage.SnapshotLookups[side].Read(ctx, s.Store, all...)
	for i, q := range queries {
		counts := storage.CountLookups.Read(ctx, s, q.Owner)[0].Value
		if counts.Following > int64(q.Longest) {
			results[i].Value.Long, results[i].Value.Edges = true, nil
		}
	}
	return results
}

func (s longByFollowings) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type firstBounds struct{ *oracle.Store }

func (s firstBounds) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	queries = slices.Clone(queries)
	first := map[storage.UserID]storage.ListQuery{}
	for i, q := range queries {
		if _, ok := first[q.Owner]; !ok {
			first[q.Owner] = q
		}
		queries[i] = first[q.Owner]
	}
	return storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
}

func (s firstBounds) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type shortLists struct{ *oracle.Store }

func (s shortLists) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	results := storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
	for i := 500; i < len(results); i++ {
		results[i].Value.Edges = nil
	}
	return results
}

func (s shortLists) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type listsOfCounted struct{ *oracle.Store }

func (s listsOfCounted) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	results := storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
	for i, q := range queries {
		if !storage.CountLookups.Read(ctx, s, q.Owner)[0].Found {
			results[i].Value = storage.List{}
		}
	}
	return results
}

func (s listsOfCounted) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type listsOfTwoMoments struct{ *oracle.Store }

func (s listsOfTwoMoments) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	before := storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
	time.Sleep(pauseBetween)
	results := storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
	for i := range results {
		results[i].Value.Version = before[i].Value.Version
	}
	return results
}

func (s listsOfTwoMoments) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

type deafSnapshots struct{ *oracle.Store }

func (s deafSnapshots) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return storage.ProfileLookups.Read(context.WithoutCancel(ctx), s.Store, ids...)
}

func (s deafSnapshots) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

// packedStore has all lists packed.
type packedStore struct{ *oracle.Store }

func (s packedStore) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := storage.NeighbourLookups[side].Read(ctx, s, owners...)
	for i, r := range results {
		if r.Found = side <= storage.Inverse && len(r.Value) > 0; !r.Found {
			r.Value = nil
		}
		results[i] = r
	}
	return results
}

func (s packedStore) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PackedLookups.Instead(ctx, b, s.packedNeighbours)
	s.Store.Bundle(ctx, b)
}

type wrongPacked struct {
	packedStore
	change func(side storage.Side, r *storage.Result[[]storage.UserID])
}

func packedWith(change func(side storage.Side, r *storage.Result[[]storage.UserID])) func(*oracle.Store) storage.Store {
	return func(s *oracle.Store) storage.Store { return wrongPacked{packedStore{s}, change} }
}

func (s wrongPacked) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := storage.PackedLookups[side].Read(ctx, s.packedStore, owners...)
	for i := range results {
		s.change(side, &results[i])
	}
	return results
}

func (s wrongPacked) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PackedLookups.Instead(ctx, b, s.packedNeighbours)
	s.packedStore.Bundle(ctx, b)
}

type packedOnce struct {
	*oracle.Store
	mu    *sync.Mutex
	first map[storage.Row][]storage.UserID
}

func (s packedOnce) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := storage.PackedLookups[side].Read(ctx, packedStore{s.Store}, owners...)
	for i, owner := range owners {
		list := storage.Row{Side: side, Edge: storage.Edge{From: owner}}
		if first, ok := s.first[list]; ok {
			results[i].Value, results[i].Found = first, true
		} else if results[i].Found {
			s.first[list] = results[i].Value
		}
	}
	return results
}

func (s packedOnce) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PackedLookups.Instead(ctx, b, s.packedNeighbours)
	s.Store.Bundle(ctx, b)
}

type packedAnsweredOnce struct{ *oracle.Store }

func (s packedAnsweredOnce) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := storage.PackedLookups[side].Read(ctx, packedStore(s), owners...)
	for i, owner := range owners {
		if slices.Contains(owners[:i], owner) {
			results[i] = storage.Result[[]storage.UserID]{}
		}
	}
	return results
}

func (s packedAnsweredOnce) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PackedLookups.Instead(ctx, b, s.packedNeighbours)
	s.Store.Bundle(ctx, b)
}

type packedOfOther struct{ *oracle.Store }

func (s packedOfOther) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := storage.PackedLookups[side].Read(ctx, packedStore(s), owners...)
	if side <= storage.Inverse {
		other := storage.PackedLookups[storage.Inverse-side].Read(ctx, packedStore(s), owners...)
		for i := range results {
			results[i].Value = other[i].Value
		}
	}
	return results
}

func (s packedOfOther) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PackedLookups.Instead(ctx, b, s.packedNeighbours)
	s.Store.Bundle(ctx, b)
}
