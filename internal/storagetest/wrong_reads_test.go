package storagetest_test

import (
	"context"
	"path"
	"slices"
	"strings"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

type threeByteText struct{ *oracle.Store }

func (s threeByteText) users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := storage.UserLookups.Read(ctx, s.Store, ids...)
	for i := range results {
		results[i].Value.Name = strings.Map(func(r rune) rune {
			if r > 0xffff {
				return '?'
			}
			return r
		}, results[i].Value.Name)
	}
	return results
}

func (s threeByteText) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.UserLookups.Instead(ctx, b, s.users)
	s.Store.Bundle(ctx, b)
}

type answersOnce struct{ *oracle.Store }

func (s answersOnce) users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := storage.UserLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			results[i] = storage.Result[storage.User]{}
		}
	}
	return results
}

func (s answersOnce) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.UserLookups.Instead(ctx, b, s.users)
	s.Store.Bundle(ctx, b)
}

type handlePatterns struct{ *oracle.Store }

func (s handlePatterns) userIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	results := storage.HandleLookups.Read(ctx, s.Store, handles...)
	for i, handle := range handles {
		for _, user := range s.Snapshot().Users {
			if like, _ := path.Match(strings.ReplaceAll(handle, "_", "?"), user.Handle); like {
				results[i] = storage.Result[storage.UserID]{Value: user.ID, Found: true}
				break
			}
		}
	}
	return results
}

func (s handlePatterns) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.HandleLookups.Instead(ctx, b, s.userIDs)
	s.Store.Bundle(ctx, b)
}

type shortBatches struct{ *oracle.Store }

func (s shortBatches) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := storage.EdgeLookups[side].Read(ctx, s.Store, pairs...)
	if len(results) > 1000 {
		clear(results[1000:])
	}
	return results
}

func (s shortBatches) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, s.edges)
	s.Store.Bundle(ctx, b)
}

type oneTable struct{ *oracle.Store }

func (s oneTable) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return storage.EdgeLookups[storage.Forward].Read(ctx, s.Store, pairs...)
}

func (s oneTable) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, s.edges)
	s.Store.Bundle(ctx, b)
}

type equalTimesAscend struct{ *oracle.Store }

func (s equalTimesAscend) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	results := storage.PageLookups[side].Read(ctx, s.Store, queries...)
	for _, result := range results {
		slices.SortFunc(result.Value, func(a, b storage.Edge) int {
			if a.UpdateTime != b.UpdateTime {
				return int(b.UpdateTime - a.UpdateTime)
			}
			if side.Peer(a.Pair()) < side.Peer(b.Pair()) {
				return -1
			}
			return 1
		})
	}
	return results
}

func (s equalTimesAscend) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

// listsType keeps a second store for its lists, in which edges of one more type are follows.
type listsType struct {
	*oracle.Store
	lists *oracle.Store
	kind  storage.EdgeType
}

func (s listsType) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	listed := slices.Clone(edges)
	for i := range listed {
		if listed[i].Type == s.kind {
			listed[i].Type = storage.Following
		}
	}
	s.lists.Apply(ctx, side, listed, rule)
	return s.Store.Apply(ctx, side, edges, rule)
}

func (s listsType) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return storage.PageLookups[side].Read(ctx, s.lists, queries...)
}

func (s listsType) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type afterIncludes struct{ *oracle.Store }

func (s afterIncludes) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		if queries[i].After != (storage.Position{}) {
			queries[i].After.Peer++
		}
	}
	return storage.PageLookups[side].Read(ctx, s.Store, queries...)
}

func (s afterIncludes) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type beforeIgnored struct{ *oracle.Store }

func (s beforeIgnored) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		queries[i].Before = storage.Position{}
	}
	return storage.PageLookups[side].Read(ctx, s.Store, queries...)
}

func (s beforeIgnored) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type backwardReversed struct{ *oracle.Store }

func (s backwardReversed) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	results := storage.PageLookups[side].Read(ctx, s.Store, queries...)
	for i, q := range queries {
		if q.Backward {
			slices.Reverse(results[i].Value)
		}
	}
	return results
}

func (s backwardReversed) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type oneLimit struct{ *oracle.Store }

func (s oneLimit) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	limits := map[storage.UserID]int{}
	for i, q := range queries {
		if limits[q.Owner] == 0 {
			limits[q.Owner] = q.Limit
		}
		queries[i].Limit = limits[q.Owner]
	}
	return storage.PageLookups[side].Read(ctx, s.Store, queries...)
}

func (s oneLimit) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type boundaryListed struct{ *oracle.Store }

func (s boundaryListed) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i, q := range queries {
		row := storage.EdgeLookups[side].Read(ctx, s, side.Pair(q.Owner, q.After.Peer))[0].Value
		if row.Type != storage.Following || row.UpdateTime != q.After.UpdateTime {
			queries[i].After = storage.Position{}
		}
	}
	return storage.PageLookups[side].Read(ctx, s.Store, queries...)
}

func (s boundaryListed) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type neighboursDescend struct{ *oracle.Store }

func (s neighboursDescend) neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := storage.NeighbourLookups[side].Read(ctx, s.Store, owners...)
	for _, result := range results {
		slices.Reverse(result.Value)
	}
	return results
}

func (s neighboursDescend) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.NeighbourLookups.Instead(ctx, b, s.neighbours)
	s.Store.Bundle(ctx, b)
}

type deaf struct{ *oracle.Store }

func (s deaf) userIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return storage.HandleLookups.Read(context.WithoutCancel(ctx), s.Store, handles...)
}

func (s deaf) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.HandleLookups.Instead(ctx, b, s.userIDs)
	s.Store.Bundle(ctx, b)
}

type emptyByCounts struct{ *oracle.Store }

func (s emptyByCounts) Empty(context.Context) (bool, error) {
	return len(s.Snapshot().Counts) == 0, nil
}
