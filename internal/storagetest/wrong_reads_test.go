package storagetest_test

import (
	"context"
	"path"
	"slices"
	"strings"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes in reading users and edges.
var readMistakes = []mistake{
	{"handles are patterns", answers(func(s *oracle.Store, _ storage.Side, handle string, r *storage.Result[storage.UserID]) {
		for _, user := range s.Snapshot().Users {
			if like, _ := path.Match(strings.ReplaceAll(handle, "_", "?"), user.Handle); like {
				*r = storage.Result[storage.UserID]{Value: user.ID, Found: true}
				break
			}
		}
	}, storage.HandleLookups), "users/HandlesAreComparedExactly", promiseOnly},
	{"the end of a batch is lost", shortens(1000, storage.EdgeLookups...), "bundles/EachOfManyKeysIsAnsweredAsAlone", promiseOnly},
	{"one table for both sides", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
		return storage.EdgeLookups[storage.Forward].Read(ctx, s, pairs...)
	}, storage.EdgeLookups...), "edges/TheSidesAreApart", historiesToo},
	{"edges of one time ascend", answers(func(_ *oracle.Store, side storage.Side, _ storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		slices.SortFunc(r.Value, func(a, b storage.Edge) int {
			if a.UpdateTime != b.UpdateTime {
				return int(b.UpdateTime - a.UpdateTime)
			}
			if side.Peer(a.Pair()) < side.Peer(b.Pair()) {
				return -1
			}
			return 1
		})
	}, storage.PageLookups...), "pages/OfOneTimeTheGreaterPeerComesFirst", historiesToo},
	{"tombstones are listed", listsType(storage.None), "pages/OnlyFollowsAreListed", historiesToo},
	{"blocks are listed", listsType(storage.Blocking), "pages/OnlyFollowsAreListed", historiesToo},
	{"after includes its row", asks(func(q *storage.PageQuery) {
		if q.After != (storage.Position{}) {
			q.After.Peer++
		}
	}, storage.PageLookups...), "pages/AfterStartsBehindIt", historiesToo},
	{"backward comes oldest first", answers(func(_ *oracle.Store, _ storage.Side, q storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		if q.Backward {
			slices.Reverse(r.Value)
		}
	}, storage.PageLookups...), "pages/BackwardTakesTheFarEnd", historiesToo},
	{"one limit for each owner", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		queries = slices.Clone(queries)
		limits := map[storage.UserID]int{}
		for i, q := range queries {
			if limits[q.Owner] == 0 {
				limits[q.Owner] = q.Limit
			}
			queries[i].Limit = limits[q.Owner]
		}
		return storage.PageLookups[side].Read(ctx, s, queries...)
	}, storage.PageLookups...), "bundles/EachKeyIsAnsweredAsAlone", historiesToo},
	{"a boundary must be listed", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		queries = slices.Clone(queries)
		for i, q := range queries {
			row := storage.EdgeLookups[side].Read(ctx, s, side.Pair(q.Owner, q.After.Peer))[0].Value
			if row.Type != storage.Following || row.UpdateTime != q.After.UpdateTime {
				queries[i].After = storage.Position{}
			}
		}
		return storage.PageLookups[side].Read(ctx, s, queries...)
	}, storage.PageLookups...), "pages/ABoundaryMayBeGone", historiesToo},
	{"edges make it not empty", reads(countedAreUsers, storage.UserIDLookups), "lifecycle/EdgesAloneLeaveItEmpty", promiseOnly},
}

// listsType takes lists from a second store, in which edges of one more type are follows.
func listsType(kind storage.EdgeType) spoil {
	return func(s *oracle.Store, w *double.Store) {
		lists := oracle.New()
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			listed := slices.Clone(edges)
			for i := range listed {
				if listed[i].Type == kind {
					listed[i].Type = storage.Following
				}
			}
			lists.Apply(ctx, side, listed, rule)
			return s.Apply(ctx, side, edges, rule)
		}
		reads(func(ctx context.Context, _ *oracle.Store, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
			return storage.PageLookups[side].Read(ctx, lists, queries...)
		}, storage.PageLookups...)(s, w)
	}
}
