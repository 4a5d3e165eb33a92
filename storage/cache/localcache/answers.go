package localcache

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"kith/storage"
)

// answers keeps the store's answers to questions of one kind about a user or a post: the viewer's marks, requests, favorites and
// relations, pages of posts and of comments. Each change on which such an answer depends raises the version of that user's or post's
// counts. So the version that the cache knew before it read the answer is part of the answer's key, and nobody has to drop the answer:
// under the next version it is not found, and it is evicted because nobody asks for it again. The version itself is dropped when the
// user or the post changes.
type answers[Q comparable, V any] struct {
	source[Q, V]
	of func(Q) storage.PostID
}

// newAnswers makes answers of a kind, which read reads, about what of says.
func newAnswers[Q comparable, V any](c *Cache, of func(Q) storage.PostID, form form[V], read func(context.Context, []Q) []storage.Result[V]) *answers[Q, V] {
	number := c.unkept.Add(1) // of the kind: some kinds have the same form of question
	// The version is in the key. Without one, no two keys are the same: the answer is for the asker alone, and is not kept.
	keyOf := func(q Q) key {
		about := of(q)
		k := key{kind: answerKind, id: about.Author, stamp: c.stampOf(about)}
		if k.stamp == 0 {
			k.number = c.unkept.Add(1)
			return k
		}
		k.number = int64(maphash.Comparable(c.seed, struct {
			number    int64
			forgotten uint32
			q         Q
		}{number, c.forgotten.Load(), q}))
		return k
	}
	lives := func(k key, _ storage.Result[V]) (life lifetime) {
		if k.stamp != 0 {
			life = c.lives(keep)
		}
		return life
	}
	return &answers[Q, V]{saying(c, answerKind, keyOf, form, lives, read), of}
}

// keepAnswers has the cache keep the answers to a kind of look-up.
func keepAnswers[Q comparable, V any](c *Cache, kind *storage.LookupKind[Q, V], of func(Q) storage.PostID, form form[V]) *answers[Q, V] {
	a := newAnswers(c, of, form, readFrom(c.store, kind))
	define(c, kind, answerKind, a.inMemory, a.fetch)
	return a
}

// itemOf is the user or the post whose version rises with each change of a side's rows of an owner, or of a post of it.
func itemOf(side storage.Side, owner storage.UserID, post int64) storage.PostID {
	if side == storage.FavoriteInbox {
		return storage.PostID{Author: owner, Number: post}
	}
	return ofUser(owner)
}

// ofUser names a user as a post without a number.
func ofUser(id storage.UserID) storage.PostID { return storage.PostID{Author: id} }

// stampOf is the version of the counts of a post, or of a user if the post has no number, or of all handles if there is no user
// either, plus 1; 0: not known.
func (c *Cache) stampOf(id storage.PostID) uint32 {
	of := c.postKey(id)
	switch {
	case id == storage.PostID{}:
		return c.names.Load() + 1
	case id.Number == 0:
		of = profileKey(id.Author)
	}
	version, known := c.lookVersion(of)
	if !known {
		return 0
	}
	return uint32(version) + 1
}

// fetch answers questions from memory, and the rest from the store, once for all who ask.
func (a *answers[Q, V]) fetch(ctx context.Context, questions []Q) []storage.Result[V] {
	a.learn(ctx, questions)
	return a.source.fetch(ctx, questions)
}

// learn reads the users and posts whose versions are not known.
func (a *answers[Q, V]) learn(ctx context.Context, questions []Q) {
	c := a.c
	var users []storage.UserID
	var posts []storage.PostID
	for _, q := range questions {
		switch of := a.of(q); {
		case c.stampOf(of) != 0 || !c.hears(of.Author): // then nothing is kept
		case of.Number == 0:
			users = append(users, of.Author)
		default:
			posts = append(posts, of)
		}
	}
	if len(users) > 0 {
		c.profiles.fetch(ctx, users)
	}
	if len(posts) > 0 {
		c.posts.fetch(ctx, posts)
	}
}

// shortRows is up to how many requests or favorites of a user are kept whole: then it is known of everybody else, and of all other
// posts, that there is none.
const shortRows = 256

func rowsOf(side storage.Side, p storage.Pair) storage.RowsQuery {
	return storage.RowsQuery{Side: side, Owner: side.Owner(p), Limit: shortRows + 1, Any: true}
}

// readShortRows does not find rows that are too many.
func (c *Cache) readShortRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	results := storage.RowLookups.Read(ctx, c.store, queries...)
	for i := range results {
		if len(results[i].Value) > shortRows {
			results[i] = storage.Result[[]storage.Edge]{}
		}
	}
	return results
}

// edgeIn looks for an edge in all rows of its owner. Tombstones are not among them.
func edgeIn(rows []storage.Edge, side storage.Side, p storage.Pair) (r storage.Result[storage.Edge]) {
	at, found := slices.BinarySearchFunc(rows, p, func(e storage.Edge, p storage.Pair) int { return side.Compare(e.Pair(), p) })
	if found {
		r.Value, r.Found = rows[at], true
	}
	return r
}

// besideEdges answers [storage.EdgeLookups] of edges of requests and favorites. Of one that has ended, it may say that there is none.
func (c *Cache) besideEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	of := c.edges[side]
	var owners []storage.RowsQuery
	for _, p := range pairs {
		if q := rowsOf(side, p); len(owners) <= fillOwners && !slices.Contains(owners, q) {
			owners = append(owners, q)
		}
	}
	if len(owners) > fillOwners || slices.ContainsFunc(owners, func(q storage.RowsQuery) bool { return !c.hears(q.Owner) }) {
		return of.fetch(ctx, pairs)
	}
	all := c.rows.fetch(ctx, owners)
	return knownOr(ctx, pairs, func(p storage.Pair, r *storage.Result[storage.Edge]) bool {
		rows := all[slices.Index(owners, rowsOf(side, p))]
		*r = edgeIn(rows.Value, side, p)
		return rows.Found
	}, of.fetch)
}

// besideEdge is an edge of requests or favorites, if it is known.
func (c *Cache) besideEdge(side storage.Side, p storage.Pair, r *storage.Result[storage.Edge]) bool {
	var all storage.Result[[]storage.Edge]
	if c.rows.inMemory(rowsOf(side, p), &all); all.Found {
		*r = edgeIn(all.Value, side, p)
		return true
	}
	return c.edges[side].inMemory(p, r)
}

// readPostPages answers [storage.PostPageLookups]. Of a page, the ids are kept: its posts change more often than it does.
func (c *Cache) readPostPages(ctx context.Context, queries []storage.PlaceQuery) []storage.Result[[]storage.Post] {
	pages := c.postPages.fetch(ctx, queries)
	var ids []storage.PostID
	var where []*storage.Post
	for k := range pages {
		pages[k].Value = slices.Clone(pages[k].Value) // others may have the same page
		for i := range pages[k].Value {
			if p := &pages[k].Value[i]; p.CreatedAt == 0 { // it has not been read with the page
				ids, where = append(ids, p.PostID), append(where, p)
			}
		}
	}
	for i, r := range c.posts.fetch(ctx, ids) {
		if !r.Found { // a post has been deleted in between
			return storage.PostPageLookups.Read(ctx, c.store, queries...)
		}
		*where[i] = r.Value
	}
	return pages
}

// postPage is a page, if it is known with all its posts.
func (c *Cache) postPage(q storage.PlaceQuery, r *storage.Result[[]storage.Post]) bool {
	if !c.postPages.inMemory(q, r) {
		return false
	}
	var p storage.Result[storage.Post]
	for i, of := range r.Value {
		if !c.posts.inMemory(of.PostID, &p) || !p.Found {
			return false
		}
		r.Value[i] = p.Value
	}
	c.metrics.hits[postKind].Add(float64(len(r.Value)))
	return true
}

func addPostIDs(to []byte, page []storage.Post) []byte {
	for _, p := range page {
		to = append(to, bytesOf([]storage.PostID{p.PostID})...)
	}
	return to
}

func parsePostIDs(data []byte) []storage.Post {
	return storage.Each(valuesOf[storage.PostID](data, len(data)/sizeOf[storage.PostID]()), func(id storage.PostID) storage.Post { return storage.Post{PostID: id} })
}

func addDetail(to []byte, d storage.Detail) []byte {
	return append(binary.AppendVarint(to, int64(d.EndsAt)), d.Attributes...)
}

func parseDetail(data []byte) storage.Detail {
	at, n := binary.Varint(data)
	return storage.Detail{EndsAt: storage.Micros(at), Attributes: storage.Attributes(data[n:])}
}

// lists is the form of lists of values without pointers.
func lists[T any]() form[[]T] {
	return form[[]T]{
		func(to []byte, list []T) []byte { return append(to, bytesOf(list)...) },
		parsed(func(data []byte) []T { return slices.Clone(valuesOf[T](data, len(data)/sizeOf[T]())) }),
	}
}

// inPlace is the form of lists that are read in place: bytes of the cache are never changed.
func inPlace[T any]() form[[]T] {
	return form[[]T]{lists[T]().add, parsed(func(data []byte) []T { return valuesOf[T](data, len(data)/sizeOf[T]()) })}
}

// rows is the form of rows.
var rows = inPlace[storage.Edge]()

// values is the form of values without pointers.
func values[T any]() form[T] {
	return form[T]{
		func(to []byte, v T) []byte { return append(to, bytesOf([]T{v})...) },
		parsed(func(data []byte) T { return valuesOf[T](data, 1)[0] }),
	}
}
