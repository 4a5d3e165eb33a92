package localcache

import (
	"context"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/finding"
	"kith/storage/wire"
)

// AtHand implements [storage.Bundler] from the entries that the cache has.
func (c *Cache) AtHand(b *storage.Bundle) {
	if !c.IsOn() {
		c.store.AtHand(b)
		return
	}
	c.Answering.AtHand(b)
}

// Bundle implements [storage.Bundler].
func (c *Cache) Bundle(ctx context.Context, b *storage.Bundle) {
	if !c.IsOn() || ctx.Err() != nil {
		c.store.Bundle(ctx, b)
		return
	}
	c.Answering.Bundle(ctx, b)
}

// keeps says what the cache answers, and from what. The rest is asked of the store.
func (c *Cache) keeps() {
	a := &c.Answering
	c.Over(c.store)
	c.profiles = saying(c, profileKind, profileKey, profiles, func(_ key, r storage.Result[storage.Profile]) lifetime { return c.livesIf(r.Value.Exists) }, readFrom(c.source, storage.ProfileLookups))
	storage.ProfileLookups.AnsweredBy(a, c.profiles.fetch) // and users and counts
	ofProfile(c, storage.UserLookups, func(p *storage.Profile) (storage.User, bool) { return p.User, p.Exists })
	ofProfile(c, storage.CountLookups, func(p *storage.Profile) (storage.Counts, bool) { return p.Counts, p.Counted })
	define(c, storage.HandleLookups, handleKind, c.handle, c.readUserIDs)

	c.blocks = saying(c, blocksKind, blocksKey, blocks, func(key, storage.Result[[]storage.UserID]) lifetime { return c.lives(keep) }, readFrom(c.store, storage.BlockLookups))
	define(c, storage.BlockLookups, blocksKind, c.blocks.inMemory, c.blocks.fetch)
	c.posts = saying(c, postKind, c.postKey, posts, func(_ key, r storage.Result[storage.Post]) lifetime { return c.livesIf(r.Found) }, readFrom(c.source, storage.PostLookups))
	define(c, storage.PostLookups, postKind, c.posts.inMemory, c.posts.fetch)

	c.rows = newAnswers(c, func(q storage.RowsQuery) storage.PostID { return ofUser(q.Owner) }, rows, c.readShortRows)
	for _, side := range storage.AllSides {
		c.pages[side] = keepAnswers(c, storage.PageLookups[side], func(q storage.PageQuery) storage.PostID { return itemOf(side, q.Owner, q.Item) }, lists[storage.Edge]())
		c.edges[side] = keepAnswers(c, storage.EdgeLookups[side], func(p storage.Pair) storage.PostID { return itemOf(side, side.Owner(p), p.Item) }, values[storage.Edge]())
		if side != storage.FavoriteInbox { // of a post, the rows are never all read
			define(c, storage.EdgeLookups[side], answerKind, func(p storage.Pair, r *storage.Result[storage.Edge]) bool { return c.besideEdge(side, p, r) },
				func(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Edge] {
					return c.besideEdges(ctx, side, pairs)
				})
		}
	}
	for _, side := range storage.Sides {
		keepAnswers(c, storage.EdgeCountLookups[side], func(q storage.EdgeCountQuery) storage.PostID { return ofUser(q.Owner) }, values[int]())
	}
	storage.EdgeLookups[:len(listSides)].AnsweredBy(a, c.readEdges)
	storage.NeighbourLookups[:len(listSides)].AnsweredBy(a, c.readNeighbours)
	idset.ListLookups[:len(listSides)].AnsweredBy(a, c.readSets)
	for _, side := range listSides {
		c.keepsLists(side)
	}
	idset.RecommenderLookups.AnsweredBy(a, c.fetchRecommenders)
	idset.RecommenderLookups.AtHandBy(a, func(ids []storage.UserID) []storage.Result[idset.Recommender] {
		dir, now := c.directory.Load(), c.now().UnixMicro()
		return each(c, recommenderKind, ids, func(id storage.UserID, r *storage.Result[idset.Recommender]) bool {
			return c.recommender(id, dir, now, r)
		})
	})

	ofFrom := func(p storage.Pair) storage.PostID { return ofUser(p.From) }
	keepAnswers(c, storage.MarkLookups, ofFrom, form[storage.EdgeMark]{wire.AppendMark, parsed(wire.ParseMark)})
	keepAnswers(c, storage.MessageLookups, ofFrom, form[string]{func(to []byte, v string) []byte { return append(to, v...) }, parsed(func(data []byte) string { return string(data) })})
	keepAnswers(c, storage.DetailLookups, ofFrom, form[storage.Detail]{addDetail, parsed(parseDetail)})
	keepAnswers(c, storage.SpecialLookups, ofUser, lists[storage.UserID]())
	keepAnswers(c, storage.KindLookups, func(k storage.OwnerKind) storage.PostID { return ofUser(k.Owner) }, values[storage.KindCount]())
	ofAuthor := func(q storage.PlaceQuery) storage.PostID { return ofUser(q.Of.Author) }
	keepAnswers(c, storage.FavoritePageLookups, ofAuthor, lists[storage.Edge]())
	keepAnswers(c, storage.CommentPageLookups, func(q storage.PlaceQuery) storage.PostID { return q.Of }, form[[]storage.Comment]{wire.AppendComments, parsed(wire.ParseComments)})
	c.postPages = keepAnswers(c, storage.PostPageLookups, ofAuthor, form[[]storage.Post]{addPostIDs, parsed(parsePostIDs)})
	define(c, storage.PostPageLookups, answerKind, c.postPage, c.readPostPages)
	last := keepAnswers(c, storage.LastPostLookups, func(q storage.LastQuery) storage.PostID { return ofUser(q.Author) }, values[storage.Micros]())
	storage.LastPostLookups.AnsweredBy(a, func(ctx context.Context, queries []storage.LastQuery) []storage.Result[storage.Micros] {
		if len(queries) > mostAuthors {
			return last.read(ctx, queries)
		}
		return last.fetch(ctx, queries)
	})
	// Anybody's name may change who has a word.
	keepAnswers(c, finding.WordLookups, func(finding.WordQuery) storage.PostID { return storage.PostID{} }, lists[storage.UserID]())
}

// ofProfile has the cache answer what is a part of profiles in memory.
func ofProfile[V any](c *Cache, kind *storage.LookupKind[storage.UserID, V], part func(*storage.Profile) (V, bool)) {
	kind.AtHandBy(&c.Answering, func(ids []storage.UserID) []storage.Result[V] {
		return each(c, profileKind, ids, func(id storage.UserID, r *storage.Result[V]) bool {
			s, ok := get[*said](c, profileKey(id))
			if ok {
				p := s.profile(id)
				r.Value, r.Found = part(&p)
			}
			return ok
		})
	})
}

// keepsLists has the cache answer what it has lists for.
func (c *Cache) keepsLists(side storage.Side) {
	a, kind := &c.Answering, listKind(side)
	storage.EdgeLookups[side].AtHandBy(a, func(pairs []storage.Pair) []storage.Result[storage.Edge] { return c.follows(side, pairs) })
	define(c, storage.PageLookups[side], kind, func(q storage.PageQuery, r *storage.Result[[]storage.Edge]) bool {
		if q.Type > storage.Following {
			return c.pages[side].inMemory(q, r)
		}
		l, ok := get[*list](c, key{kind: kind, id: q.Owner})
		if ok {
			*r = l.page(q)
		}
		return ok
	}, func(ctx context.Context, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		return c.readPages(ctx, side, queries)
	})
	idset.ListLookups[side].AtHandBy(a, func(owners []storage.UserID) []storage.Result[*idset.List] {
		dir := c.directory.Load()
		return each(c, kind, owners, func(owner storage.UserID, r *storage.Result[*idset.List]) bool {
			l, ok := get[*list](c, key{kind: kind, id: owner})
			if ok {
				*r = l.set(dir)
			}
			return ok
		})
	})
}

// mostAuthors bounds the authors of one feed about whom it is kept when they have posted last.
const mostAuthors = 500

var listSides = [...]storage.Side{storage.Forward, storage.Inverse}

// define has the cache answer a kind of look-up by fetch, and from memory by known.
func define[K, V any](c *Cache, of *storage.LookupKind[K, V], counted kind, known func(K, *storage.Result[V]) bool, fetch func(context.Context, []K) []storage.Result[V]) {
	of.AnsweredBy(&c.Answering, fetch)
	of.AtHandBy(&c.Answering, func(keys []K) []storage.Result[V] { return each(c, counted, keys, known) })
}

// each answers keys if all of them are known.
func each[K, V any](c *Cache, counted kind, keys []K, known func(K, *storage.Result[V]) bool) []storage.Result[V] {
	results := make([]storage.Result[V], len(keys))
	for i, key := range keys {
		if !known(key, &results[i]) {
			return nil
		}
	}
	c.asked(counted, len(results), 0)
	return results
}

// knownOr answers keys that are known, and has the rest read.
func knownOr[K, V any](ctx context.Context, keys []K, known func(K, *storage.Result[V]) bool, read func(context.Context, []K) []storage.Result[V]) []storage.Result[V] {
	results, rest := make([]storage.Result[V], len(keys)), []int(nil)
	for i, key := range keys {
		if !known(key, &results[i]) {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		for k, r := range read(ctx, storage.Chosen(keys, rest)) {
			results[rest[k]] = r
		}
	}
	return results
}

// follows are edges of follows, if all of them are known.
func (c *Cache) follows(side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(pairs))
	var owner storage.UserID
	var of *list
	for i, p := range pairs {
		if id := side.Owner(p); id != owner {
			owner = id
			of, _ = get[*list](c, key{kind: listKind(side), id: id})
		}
		sure := false
		if of != nil {
			results[i], sure = of.edge(p)
		}
		if !sure {
			if results[i], sure = c.edgeOfOther(side, p); !sure {
				return nil
			}
		}
	}
	c.asked(listKind(side), 1, 0)
	return results
}

// page answers a query for follows.
func (l *list) page(q storage.PageQuery) storage.Result[[]storage.Edge] {
	positions := l.follows.Order.Page(q.After, q.Before, q.Limit, q.Backward)
	edges := make([]storage.Edge, len(positions))
	for i, at := range positions {
		p := l.side.Pair(q.Owner, at.Peer)
		edges[i] = storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: at.UpdateTime}
	}
	return storage.Result[[]storage.Edge]{Value: edges, Found: true}
}

// asked counts keys that a request has asked for: how many were known and how many are read for it.
func (c *Cache) asked(k kind, hits, misses int) {
	c.metrics.hits[k].Add(float64(hits))
	c.metrics.misses[k].Add(float64(misses))
	if !c.requested.Load() { // a write takes the memory from the other processors, and it is mostly set
		c.requested.Store(true)
	}
}
