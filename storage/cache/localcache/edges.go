package localcache

import (
	"context"
	"slices"

	"kith/storage"
)

// fillOwners bounds the owners in one question whose lists are read to answer it and kept for the
// next one. If there are more, their edges are looked up one by one.
const fillOwners = 8

// readEdges answers [storage.EdgeLookups] of follows.
func (c *Cache) readEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(pairs))
	where := c.listsFor(ctx, side, pairs).edges(side, pairs, storage.Indexes(len(pairs)), results)
	if side == storage.Inverse {
		where = c.edgesOfOthers(ctx, pairs, where, results)
	}
	if len(where) == 0 {
		return results
	}
	for k, r := range storage.EdgeLookups[side].Read(ctx, c.store, storage.Chosen(pairs, where)...) {
		results[where[k]] = r
	}
	return results
}

// edgesOfOthers looks up edges of the inverse side in the followings of their other ends: a
// celebrity's list of followers is long, and its followers' own lists are mostly short. It returns
// the pairs that are left. The other way round is not done: the follower side may lack what a user
// has just written and must see.
func (c *Cache) edgesOfOthers(ctx context.Context, pairs []storage.Pair, where []int, results []storage.Result[storage.Edge]) (rest []int) {
	if len(where) == 0 {
		return where
	}
	return c.listsFor(ctx, storage.Forward, storage.Chosen(pairs, where)).edges(storage.Forward, pairs, where, results)
}

// edgeOfOther looks one edge up in this way if the cache has the other list.
func (c *Cache) edgeOfOther(side storage.Side, p storage.Pair) (r storage.Result[storage.Edge], sure bool) {
	if side != storage.Inverse {
		return r, false
	}
	l, ok := get[*list](c, key{kind: forwardKind, id: p.From})
	if !ok {
		return r, false
	}
	return l.edge(p)
}

// listsOf are lists by owner; nil: it has to be looked up otherwise.
type listsOf map[storage.UserID]*list

// edges looks up the pairs at the indices in where, and returns the indices of those that are not
// sure.
func (o listsOf) edges(side storage.Side, pairs []storage.Pair, where []int, results []storage.Result[storage.Edge]) (rest []int) {
	for _, i := range where {
		sure := false
		if l := o[side.Owner(pairs[i])]; l != nil {
			results[i], sure = l.edge(pairs[i])
		}
		if !sure {
			rest = append(rest, i)
		}
	}
	return rest
}

// listsFor returns the lists of the owners of pairs: all that the cache has, and it reads the
// others if they are few.
func (c *Cache) listsFor(ctx context.Context, side storage.Side, pairs []storage.Pair) listsOf {
	lists := make(listsOf)
	var owners []storage.UserID
	for _, p := range pairs {
		owner := side.Owner(p)
		if _, seen := lists[owner]; !seen {
			lists[owner] = nil
			owners = append(owners, owner)
		}
	}
	if len(owners) > fillOwners {
		for _, owner := range owners {
			lists[owner], _ = get[*list](c, key{kind: listKind(side), id: owner})
		}
		return lists
	}
	for i, r := range c.fetchLists(ctx, side, owners) {
		lists[owners[i]] = r.Value // nil if it is too long or could not be read: then rows are looked up
	}
	return lists
}

// answer answers queries from lists, and those whose lists are too long from rows.
func answer[Q, V any](ctx context.Context, c *Cache, side storage.Side, queries []Q, owner func(Q) storage.UserID,
	byList func(*list, Q) storage.Result[V], byRows *storage.LookupKind[Q, V],
) []storage.Result[V] {
	results := make([]storage.Result[V], len(queries))
	var rest []Q
	var where []int
	for i, r := range c.fetchLists(ctx, side, storage.Each(queries, owner)) {
		switch {
		case r.Found:
			results[i] = byList(r.Value, queries[i])
		case r.Err != nil:
			results[i].Err = r.Err
		default:
			rest, where = append(rest, queries[i]), append(where, i)
		}
	}
	if len(rest) > 0 {
		for i, r := range byRows.Read(ctx, c.store, rest...) {
			results[where[i]] = r
		}
	}
	return results
}

// readPages answers [storage.PageLookups] of follows.
func (c *Cache) readPages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	if slices.ContainsFunc(queries, func(q storage.PageQuery) bool { return q.Type > storage.Following }) {
		return c.pages[side].fetch(ctx, queries)
	}
	return answer(ctx, c, side, queries, func(q storage.PageQuery) storage.UserID { return q.Owner }, (*list).page, storage.PageLookups[side])
}

// readNeighbours answers [storage.NeighbourLookups] of follows.
func (c *Cache) readNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	ids := func(l *list, _ storage.UserID) storage.Result[[]storage.UserID] {
		return storage.Result[[]storage.UserID]{Value: l.follows.Peers.IDs(), Found: true}
	}
	return answer(ctx, c, side, owners, func(id storage.UserID) storage.UserID { return id }, ids, storage.NeighbourLookups[side])
}
