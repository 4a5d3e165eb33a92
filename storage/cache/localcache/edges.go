package localcache

import (
	"context"
	"slices"

	"kith/storage"
)

// fillOwners bounds the owners in one question whose lists are read to answer it and kept for the
// next one. If there are more, their edges are looked up one by one.
const fillOwners = 8

// readEdges answers [storage.EdgeLookups] of follows. Edges of the inverse side are also looked for in the followings of their other
// ends: a celebrity's list of followers is long, and its followers' own lists are mostly short. The other way round is not done: the
// follower side may lack what a user has just written and must see.
func (c *Cache) readEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	read := readFrom(c.store, storage.EdgeLookups[side])
	return knownOr(ctx, pairs, c.listsFor(ctx, side, pairs), func(ctx context.Context, rest []storage.Pair) []storage.Result[storage.Edge] {
		if side == storage.Inverse {
			return knownOr(ctx, rest, c.listsFor(ctx, storage.Forward, rest), read)
		}
		return read(ctx, rest)
	})
}

// edgeOfOther looks one edge up in the followings of its other end, if the cache has them.
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

// listsFor looks for edges in the lists of their owners: in all that the cache has, and it reads the
// others if they are few.
func (c *Cache) listsFor(ctx context.Context, side storage.Side, pairs []storage.Pair) func(storage.Pair, *storage.Result[storage.Edge]) bool {
	lists := make(map[storage.UserID]*list) // nil: it has to be looked up otherwise
	var owners []storage.UserID
	for _, p := range pairs {
		owner := side.Owner(p)
		if _, seen := lists[owner]; !seen && c.hears(owner) {
			lists[owner] = nil
			owners = append(owners, owner)
		}
	}
	if len(owners) > fillOwners {
		for _, owner := range owners {
			lists[owner], _ = get[*list](c, key{kind: listKind(side), id: owner})
		}
	} else {
		for i, r := range c.fetchLists(ctx, side, owners) {
			lists[owners[i]] = r.Value // nil if it is too long or could not be read: then rows are looked up
		}
	}
	return func(p storage.Pair, r *storage.Result[storage.Edge]) (sure bool) {
		if l := lists[side.Owner(p)]; l != nil {
			*r, sure = l.edge(p)
		}
		return sure
	}
}

// answer answers queries from lists, and those whose lists are too long from rows.
func answer[Q, V any](ctx context.Context, c *Cache, side storage.Side, queries []Q, owner func(Q) storage.UserID,
	byList func(*list, Q) storage.Result[V], byRows *storage.LookupKind[Q, V],
) []storage.Result[V] {
	results := make([]storage.Result[V], len(queries))
	var listed, rest []int
	for i, q := range queries {
		if c.hears(owner(q)) {
			listed = append(listed, i)
		} else {
			rest = append(rest, i)
		}
	}
	for k, r := range c.fetchLists(ctx, side, storage.Each(storage.Chosen(queries, listed), owner)) {
		i := listed[k]
		switch {
		case r.Found:
			results[i] = byList(r.Value, queries[i])
		case r.Err != nil:
			results[i].Err = r.Err
		default:
			rest = append(rest, i)
		}
	}
	for k, r := range byRows.Read(ctx, c.store, storage.Chosen(queries, rest)...) {
		results[rest[k]] = r
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
