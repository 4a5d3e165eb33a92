package localcache

import (
	"context"
	"sync"

	"kith/storage"
	"kith/storage/cache/idset"
)

// AtHand implements [storage.Bundler] from the entries that the cache has.
func (c *Cache) AtHand(b *storage.Bundle) {
	if c.Mode() == Off {
		b.WithoutCache()
		return
	}
	atHand(c, profileKind, profileKey, storage.UserLookups.In(b), func(p *profile) storage.Result[storage.User] {
		return storage.Result[storage.User]{Value: p.User, Found: p.Exists}
	})
	atHand(c, profileKind, profileKey, storage.CountLookups.In(b), func(p *profile) storage.Result[storage.Counts] {
		return storage.Result[storage.Counts]{Value: p.Counts, Found: p.Counted}
	})
	if l := storage.HandleLookups.In(b); l.Open() {
		l.Results = c.handlesAtHand(l.Keys)
	}
	atHand(c, blocksKind, blocksKey, storage.BlockLookups.In(b), (*blockList).result)
	atHand(c, postKind, c.postKey, storage.PostLookups.In(b), (*post).result)
	dir := c.directory.Load()
	for _, side := range listSides {
		c.edgesAtHand(side, storage.EdgeLookups[side].In(b))
		of := func(owner storage.UserID) key { return key{kind: listKind(side), id: owner} }
		eachAtHand(c, listKind(side), storage.PageLookups[side].In(b), func(q storage.PageQuery) (r storage.Result[[]storage.Edge], ok bool) {
			l, ok := get[*list](c, of(q.Owner))
			if ok = ok && q.Type <= storage.Following; ok {
				r = l.page(q)
			}
			return r, ok
		})
		atHand(c, listKind(side), of, idset.ListLookups[side].In(b), func(l *list) storage.Result[*idset.List] { return l.set(dir) })
	}
	c.answersAtHand(b)
	now := c.now().UnixMicro()
	eachAtHand(c, recommenderKind, idset.RecommenderLookups.In(b), func(id storage.UserID) (storage.Result[idset.Recommender], bool) {
		return c.recommender(id, dir, now)
	})
}

// Bundle implements [storage.Bundler].
func (c *Cache) Bundle(ctx context.Context, b *storage.Bundle) {
	if c.Mode() == Off {
		c.Reader.Bundle(ctx, b)
		return
	}
	others := *b
	var reading sync.WaitGroup
	defer reading.Wait()
	for _, side := range listSides {
		if l := idset.ListLookups[side].Remove(&others); l.Open() {
			reading.Go(func() { c.sets(ctx, side, l) })
		}
	}
	if l := idset.RecommenderLookups.Remove(&others); l.Open() {
		reading.Go(func() { l.Results = c.fetchRecommenders(ctx, l.Keys) })
	}
	others.ReadEach(ctx, c)
}

var listSides = [...]storage.Side{storage.Forward, storage.Inverse}

// atHand answers ids from entries of one kind if it has all of them.
func atHand[E entry, K comparable, V any](c *Cache, kind kind, key func(K) key, l *storage.Lookup[K, V], of func(E) storage.Result[V]) {
	eachAtHand(c, kind, l, func(id K) (r storage.Result[V], ok bool) {
		e, ok := get[E](c, key(id))
		if ok {
			r = of(e)
		}
		return r, ok
	})
}

// eachAtHand answers questions if each can be.
func eachAtHand[Q, V any](c *Cache, kind kind, l *storage.Lookup[Q, V], of func(Q) (storage.Result[V], bool)) {
	if !l.Open() {
		return
	}
	results := make([]storage.Result[V], len(l.Keys))
	for i, q := range l.Keys {
		var ok bool
		if results[i], ok = of(q); !ok {
			return
		}
	}
	c.asked(kind, len(results), 0)
	l.Results = results
}

// answersAtHand answers what it can from [answers].
func (c *Cache) answersAtHand(b *storage.Bundle) {
	a := &c.answers
	for side := storage.Requests; side <= storage.RelationInbox; side++ {
		eachAtHand(c, answerKind, storage.EdgeLookups[side].In(b), func(p storage.Pair) (storage.Result[storage.Edge], bool) { return c.besideEdge(side, p) })
	}
	for side := range a.pages {
		answerAtHand(c, &a.pages[side], storage.PageLookups[side].In(b))
	}
	eachAtHand(c, answerKind, storage.MarkLookups.In(b), func(p storage.Pair) (r storage.Result[storage.EdgeMark], ok bool) {
		if c.hasNoMark(p) {
			return r, true
		}
		return a.marks.inMemory(c, p)
	})
	answerAtHand(c, &a.messages, storage.MessageLookups.In(b))
	answerAtHand(c, &a.specials, storage.SpecialLookups.In(b))
	answerAtHand(c, &a.comments, storage.CommentPageLookups.In(b))
	answerAtHand(c, &a.favorites, storage.FavoritePageLookups.In(b))
	answerAtHand(c, &a.details, storage.DetailLookups.In(b))
	answerAtHand(c, &a.kinds, storage.KindLookups.In(b))
	if l := storage.PostPageLookups.In(b); l.Open() {
		if answerAtHand(c, &a.postPages, l); !l.Open() && !c.complete(l.Results, c.postsAtHand) {
			l.Results = nil
		}
	}
}

func answerAtHand[Q comparable, V any](c *Cache, a *answers[Q, V], l *storage.Lookup[Q, V]) {
	atHand(c, answerKind, func(q Q) key { return a.key(c, q) }, l, a.result)
}

func (c *Cache) edgesAtHand(side storage.Side, l *storage.Lookup[storage.Pair, storage.Edge]) {
	if !l.Open() {
		return
	}
	results := make([]storage.Result[storage.Edge], len(l.Keys))
	var owner storage.UserID
	var of *list
	for i, p := range l.Keys {
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
				return
			}
		}
	}
	c.asked(listKind(side), 1, 0)
	l.Results = results
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
