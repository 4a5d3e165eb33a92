package localcache

import "kith/storage"

// What follows answers from memory alone, or not at all: [kith/loaders.AtHand].

// UsersAtHand is Users.
func (c *Cache) UsersAtHand(ids []storage.UserID) ([]storage.Result[storage.User], bool) {
	return atHand(c, profileKind, ids, func(p *profile) storage.Result[storage.User] {
		return storage.Result[storage.User]{Value: p.User, Found: p.Exists}
	})
}

// CountsAtHand is Counts.
func (c *Cache) CountsAtHand(ids []storage.UserID) ([]storage.Result[storage.Counts], bool) {
	return atHand(c, profileKind, ids, func(p *profile) storage.Result[storage.Counts] {
		return storage.Result[storage.Counts]{Value: p.Counts, Found: p.Counted}
	})
}

// ProfilesAtHand is Profiles, shared: they must not be changed.
func (c *Cache) ProfilesAtHand(ids []storage.UserID) ([]*storage.Profile, bool) {
	if c.Mode() == Off {
		return nil, false
	}
	people := make([]*storage.Profile, len(ids))
	for i, id := range ids {
		p, ok := get[*profile](c, key{profileKind, id})
		if !ok {
			return nil, false
		}
		people[i] = &p.Profile
	}
	c.metrics.hit(profileKind, len(ids))
	return people, true
}

// BlocksAtHand is Blocks.
func (c *Cache) BlocksAtHand(ids []storage.UserID) ([]storage.Result[[]storage.UserID], bool) {
	return atHand(c, blocksKind, ids, func(b *blockList) storage.Result[[]storage.UserID] {
		return storage.Result[[]storage.UserID]{Value: b.users, Found: true}
	})
}

// atHand answers ids from entries of one kind, if all of them are there.
func atHand[E entry, V any](c *Cache, kind kind, ids []storage.UserID, of func(E) storage.Result[V]) ([]storage.Result[V], bool) {
	if c.Mode() != On {
		return nil, false
	}
	results := make([]storage.Result[V], len(ids))
	for i, id := range ids {
		e, ok := get[E](c, key{kind, id})
		if !ok {
			return nil, false
		}
		results[i] = of(e)
	}
	c.metrics.hit(kind, len(ids))
	return results, true
}

// EdgesAtHand is Edges.
func (c *Cache) EdgesAtHand(side storage.Side, pairs []storage.Pair) ([]storage.Result[storage.Edge], bool) {
	if !c.keeps(side) {
		return nil, false
	}
	results := make([]storage.Result[storage.Edge], len(pairs))
	var owner storage.UserID
	var l *list
	for i, p := range pairs {
		if id := side.Owner(p); id != owner {
			owner = id
			l, _ = get[*list](c, key{listKind(side), id})
		}
		sure := false
		if l != nil {
			results[i], sure = l.edge(p)
		}
		if !sure {
			if results[i], sure = c.edgeOfOther(side, p); !sure {
				return nil, false
			}
		}
	}
	c.metrics.hit(listKind(side), 1)
	return results, true
}

// PagesAtHand is Pages.
func (c *Cache) PagesAtHand(side storage.Side, queries []storage.PageQuery) ([]storage.Result[[]storage.Edge], bool) {
	if !c.keeps(side) {
		return nil, false
	}
	results := make([]storage.Result[[]storage.Edge], len(queries))
	for i, q := range queries {
		l, ok := get[*list](c, key{listKind(side), q.Owner})
		if !ok || q.Type > storage.Following {
			return nil, false
		}
		results[i] = l.page(q)
	}
	c.metrics.hit(listKind(side), len(queries))
	return results, true
}
