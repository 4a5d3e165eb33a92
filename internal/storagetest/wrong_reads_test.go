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

func (s threeByteText) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := s.Store.Users(ctx, ids)
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

type answersOnce struct{ *oracle.Store }

func (s answersOnce) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := s.Store.Users(ctx, ids)
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			results[i] = storage.Result[storage.User]{}
		}
	}
	return results
}

type handlePatterns struct{ *oracle.Store }

func (s handlePatterns) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	results := s.Store.UserIDs(ctx, handles)
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

type shortBatches struct{ *oracle.Store }

func (s shortBatches) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := s.Store.Edges(ctx, side, pairs)
	if len(results) > 1000 {
		clear(results[1000:])
	}
	return results
}

type oneTable struct{ *oracle.Store }

func (s oneTable) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return s.Store.Edges(ctx, storage.Forward, pairs)
}

type equalTimesAscend struct{ *oracle.Store }

func (s equalTimesAscend) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	results := s.Store.Pages(ctx, side, queries)
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

func (s listsType) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return s.lists.Pages(ctx, side, queries)
}

type afterIncludes struct{ *oracle.Store }

func (s afterIncludes) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		if queries[i].After != (storage.Position{}) {
			queries[i].After.Peer++
		}
	}
	return s.Store.Pages(ctx, side, queries)
}

type beforeIgnored struct{ *oracle.Store }

func (s beforeIgnored) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		queries[i].Before = storage.Position{}
	}
	return s.Store.Pages(ctx, side, queries)
}

type backwardReversed struct{ *oracle.Store }

func (s backwardReversed) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	results := s.Store.Pages(ctx, side, queries)
	for i, q := range queries {
		if q.Backward {
			slices.Reverse(results[i].Value)
		}
	}
	return results
}

type oneLimit struct{ *oracle.Store }

func (s oneLimit) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	limits := map[storage.UserID]int{}
	for i, q := range queries {
		if limits[q.Owner] == 0 {
			limits[q.Owner] = q.Limit
		}
		queries[i].Limit = limits[q.Owner]
	}
	return s.Store.Pages(ctx, side, queries)
}

type boundaryListed struct{ *oracle.Store }

func (s boundaryListed) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i, q := range queries {
		row := s.Edges(ctx, side, []storage.Pair{side.Pair(q.Owner, q.After.Peer)})[0].Value
		if row.Type != storage.Following || row.UpdateTime != q.After.UpdateTime {
			queries[i].After = storage.Position{}
		}
	}
	return s.Store.Pages(ctx, side, queries)
}

type neighboursDescend struct{ *oracle.Store }

func (s neighboursDescend) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := s.Store.Neighbours(ctx, side, owners)
	for _, result := range results {
		slices.Reverse(result.Value)
	}
	return results
}

type deaf struct{ *oracle.Store }

func (s deaf) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return s.Store.UserIDs(context.WithoutCancel(ctx), handles)
}

type emptyByCounts struct{ *oracle.Store }

func (s emptyByCounts) Empty(context.Context) (bool, error) {
	return len(s.Snapshot().Counts) == 0, nil
}
