package storagetest_test

import (
	"context"
	"slices"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about what caches keep, and about the list of all users.
var snapshotMistakes = []mistake{
	{"the list of users begins with the last", asks(func(q *storage.ShardQuery[storage.UserID]) { q.After = max(q.After, 1) - 1 }, storage.UserIDLookups), "userList/EveryUserIsListedOnceOnItsShard", promiseOnly},
	{"any id with counts is a user", reads(countedAreUsers, storage.UserIDLookups), "userList/EveryUserIsListedOnceOnItsShard", promiseOnly},
	{"who is no user has no profile", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, p *storage.Result[storage.Profile]) {
		if !p.Value.Exists {
			*p = storage.Result[storage.Profile]{}
		}
	}, storage.ProfileLookups), "profiles/OnlyCountsMayBeThere", historiesToo},
	{"nobody has a profile", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, p *storage.Result[storage.Profile]) {
		p.Found = p.Err == nil
	}, storage.ProfileLookups), "profiles/NobodyIsNotFound", historiesToo},
	{"the end of a batch has no profiles", shortens(500, storage.ProfileLookups), "bundles/EachOfManyKeysIsAnsweredAsAlone", promiseOnly},
	{"profiles are of two moments", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, ids []storage.UserID) []storage.Result[storage.Profile] {
		users := storage.UserLookups.Read(ctx, s, ids...)
		time.Sleep(pauseBetween)
		results := storage.ProfileLookups.Read(ctx, s, ids...)
		for i := range results {
			results[i].Value.User = users[i].Value
		}
		return results
	}, storage.ProfileLookups), "profiles/AllIsOfOneMoment", lostRace},
	{"who has no edges has no list", answers(func(_ *oracle.Store, _ storage.Side, _ storage.ListQuery, l *storage.Result[storage.List]) {
		l.Found = l.Found && (l.Value.Long || len(l.Value.Edges) > 0)
	}, storage.SnapshotLookups...), "lists/WithoutEdgesTheyAreEmpty", historiesToo},
	{"blocks are not in lists", answers(func(_ *oracle.Store, _ storage.Side, _ storage.ListQuery, l *storage.Result[storage.List]) {
		l.Value.Edges = slices.DeleteFunc(l.Value.Edges, func(e storage.Edge) bool { return e.Type == storage.Blocking })
	}, storage.SnapshotLookups...), "lists/FollowsAndBlocksAscend", historiesToo},
	{"tombstones begin behind the time", answers(func(_ *oracle.Store, _ storage.Side, q storage.ListQuery, l *storage.Result[storage.List]) {
		l.Value.Edges = slices.DeleteFunc(l.Value.Edges, func(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime == q.EndedSince })
	}, storage.SnapshotLookups...), "lists/TombstonesAreThereFromATimeOn", promiseOnly},
	{"a list that just fits is long", asks(func(q *storage.ListQuery) { q.Longest-- }, storage.SnapshotLookups...), "lists/ALongOneIsNotRead", historiesToo},
	{"rows make a list long", answers(func(_ *oracle.Store, _ storage.Side, q storage.ListQuery, l *storage.Result[storage.List]) {
		if len(l.Value.Edges) > q.Longest {
			l.Value.Long, l.Value.Edges = true, nil
		}
	}, storage.SnapshotLookups...), "lists/ALongOneIsNotRead", historiesToo},
	{"followings decide which list is long", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
		all := slices.Clone(queries)
		for i := range all {
			all[i].Longest = 1 << 40
		}
		results := storage.SnapshotLookups[side].Read(ctx, s, all...)
		for i, q := range queries {
			counts := storage.CountLookups.Read(ctx, s, q.Owner)[0].Value
			if counts.Following > int64(q.Longest) {
				results[i].Value.Long, results[i].Value.Edges = true, nil
			}
		}
		return results
	}, storage.SnapshotLookups...), "lists/TheSidesAreApart", historiesToo},
	{"an owner has one bound", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
		queries = slices.Clone(queries)
		first := map[storage.UserID]storage.ListQuery{}
		for i, q := range queries {
			if _, ok := first[q.Owner]; !ok {
				first[q.Owner] = q
			}
			queries[i] = first[q.Owner]
		}
		return storage.SnapshotLookups[side].Read(ctx, s, queries...)
	}, storage.SnapshotLookups...), "lists/QueriesOfOneOwnerMayDiffer", historiesToo},
	{"the end of a batch has no lists", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
		results := storage.SnapshotLookups[side].Read(ctx, s, queries...)
		for i := 500; i < len(results); i++ {
			results[i].Value.Edges = nil
		}
		return results
	}, storage.SnapshotLookups...), "lists/ALargeBatchIsAnswered", promiseOnly},
	{"an owner without counts has no list", answers(func(s *oracle.Store, _ storage.Side, q storage.ListQuery, r *storage.Result[storage.List]) {
		if !storage.CountLookups.Read(context.Background(), s, q.Owner)[0].Found {
			r.Value = storage.List{}
		}
	}, storage.SnapshotLookups...), "lists/TheTombstonesOfAnErasedOwnerAreThere", promiseOnly},
	{"lists are of two moments", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
		before := storage.SnapshotLookups[side].Read(ctx, s, queries...)
		time.Sleep(pauseBetween)
		results := storage.SnapshotLookups[side].Read(ctx, s, queries...)
		for i := range results {
			results[i].Value.Version = before[i].Value.Version
		}
		return results
	}, storage.SnapshotLookups...), "lists/AllIsOfOneMoment", lostRace},
	{"empty lists are packed", answersPacked(func(_ *oracle.Store, side storage.Side, _ storage.UserID, r *storage.Result[[]storage.UserID]) {
		r.Found = side.Truth() == storage.Forward
	}), "packedNeighbours/WithoutFollowsThereIsNoList", promiseOnly},
	{"requests are packed", answersPacked(func(_ *oracle.Store, side storage.Side, _ storage.UserID, r *storage.Result[[]storage.UserID]) {
		r.Found = r.Found || side.Truth() != storage.Forward
	}), "packedNeighbours/RequestsAreNotPacked", historiesToo},
	{"packed lists are those of another side", answersPacked(func(s *oracle.Store, side storage.Side, owner storage.UserID, r *storage.Result[[]storage.UserID]) {
		if side.Truth() == storage.Forward {
			r.Value = storage.PackedLookups[storage.Inverse-side].Read(context.Background(), s, owner)[0].Value
		}
	}), "packedNeighbours/WhatIsFoundIsTheList", historiesToo},
}

// pauseBetween is long enough for a write in between.
const pauseBetween = 200 * time.Microsecond

func countedAreUsers(_ context.Context, s *oracle.Store, _ storage.Side, queries []storage.ShardQuery[storage.UserID]) []storage.Result[[]storage.UserID] {
	return storage.Each(queries, func(q storage.ShardQuery[storage.UserID]) (r storage.Result[[]storage.UserID]) {
		for _, counts := range s.Snapshot().Counts {
			if counts.ID > q.After && len(r.Value) < q.Limit {
				r.Value = append(r.Value, counts.ID)
			}
		}
		return r
	})
}
