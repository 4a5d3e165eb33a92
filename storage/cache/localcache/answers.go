package localcache

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"kith/storage"
	"kith/storage/wire"
)

// answers keeps what the store has said to questions of one kind about a user or a post: the viewer's marks, requests, favorites and
// relations, pages of posts and of comments. Whatever such an answer depends on raises the version of that user's or post's counts.
// So an answer is kept under this version, as it was before the answer was read, and nobody has to forget it: with the next version
// it is not found any more, and leaves the cache because it is never asked for. The version is what the cache has of the user or the
// post, which is forgotten when it changes.
type answers[Q comparable, V any] struct {
	number uint8 // of the kind: some kinds have the same form of question
	of     func(Q) storage.PostID
	form   form[V]
	read   func(storage.Reader, context.Context, []Q) []storage.Result[V]
	fills  fills[Q, V]
}

// form writes values as bytes, and reads them. What is read shares nothing with the bytes.
type form[V any] struct {
	add   func(to []byte, v V) []byte
	parse func(data []byte) V
}

// answerKinds are all kinds of answers.
type answerKinds struct {
	rows       answers[storage.RowsQuery, []storage.Edge]                 // all requests or favorites of a user, if they are few
	edges      [len(storage.AllSides)]answers[storage.Pair, storage.Edge] // of requests and favorites
	pages      [len(storage.AllSides)]answers[storage.PageQuery, []storage.Edge]
	edgeCounts [len(storage.Sides)]answers[storage.EdgeCountQuery, int]
	marks      answers[storage.Pair, storage.EdgeMark]
	messages   answers[storage.Pair, string]
	specials   answers[storage.UserID, []storage.UserID]
	postPages  answers[storage.PostsQuery, []storage.Post]
	lastPosts  answers[lastPost, storage.Micros]
	comments   answers[storage.CommentsQuery, []storage.Comment]
	favorites  answers[storage.FavoritesQuery, []storage.Edge]
	details    answers[storage.Pair, storage.Detail]
	kinds      answers[storage.OwnerKind, storage.KindCount]
	searches   answers[search, []storage.UserID]
}

// lastPost asks when an author published the newest post up to a time.
type lastPost struct {
	author storage.UserID
	upTo   storage.Micros
}

// search asks for users by a word. Anybody's name may change the answer.
type search struct {
	prefix string
	limit  int
}

func (a *answerKinds) init() {
	kinds := uint8(0)
	for _, side := range storage.AllSides {
		of := func(p storage.Pair) storage.PostID { return storage.PostID{Author: side.Owner(p)} }
		if side == storage.FavoriteInbox {
			of = storage.Pair.PostID
		}
		define(&kinds, &a.edges[side], of, values[storage.Edge](), func(r storage.Reader, ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Edge] {
			return r.Edges(ctx, side, pairs)
		})
		ofOwner := func(q storage.PageQuery) storage.PostID { return ofUser(q.Owner) }
		if side == storage.FavoriteInbox {
			ofOwner = func(q storage.PageQuery) storage.PostID { return storage.PostID{Author: q.Owner, Number: q.Post} }
		}
		define(&kinds, &a.pages[side], ofOwner, lists[storage.Edge](), func(r storage.Reader, ctx context.Context, q []storage.PageQuery) []storage.Result[[]storage.Edge] {
			return r.Pages(ctx, side, q)
		})
	}
	for _, side := range storage.Sides {
		define(&kinds, &a.edgeCounts[side], func(q storage.EdgeCountQuery) storage.PostID { return ofUser(q.Owner) }, values[int](), func(r storage.Reader, ctx context.Context, q []storage.EdgeCountQuery) []storage.Result[int] {
			return r.CountEdges(ctx, side, q)
		})
	}
	define(&kinds, &a.rows, func(q storage.RowsQuery) storage.PostID { return ofUser(q.Owner) }, rows, by(readShortRows))
	ofFrom := func(p storage.Pair) storage.PostID { return ofUser(p.From) }
	define(&kinds, &a.marks, ofFrom, form[storage.EdgeMark]{wire.AppendMark, wire.ParseMark}, storage.Reader.Marks)
	define(&kinds, &a.messages, ofFrom, form[string]{func(to []byte, v string) []byte { return append(to, v...) }, func(data []byte) string { return string(data) }}, storage.Reader.Messages)
	define(&kinds, &a.specials, ofUser, lists[storage.UserID](), storage.Reader.Specials)
	define(&kinds, &a.postPages, func(q storage.PostsQuery) storage.PostID { return ofUser(q.Author) }, form[[]storage.Post]{addPostIDs, parsePostIDs}, storage.Reader.PostPages)
	define(&kinds, &a.lastPosts, func(q lastPost) storage.PostID { return ofUser(q.author) }, values[storage.Micros](), by(readLastPosts))
	define(&kinds, &a.comments, func(q storage.CommentsQuery) storage.PostID { return q.Post }, form[[]storage.Comment]{wire.AppendComments, wire.ParseComments}, storage.Reader.CommentPages)
	define(&kinds, &a.favorites, func(q storage.FavoritesQuery) storage.PostID { return ofUser(q.User) }, lists[storage.Edge](), storage.Reader.FavoritePages)
	define(&kinds, &a.details, ofFrom, form[storage.Detail]{addDetail, parseDetail}, storage.Reader.Details)
	define(&kinds, &a.kinds, func(k storage.OwnerKind) storage.PostID { return ofUser(k.Owner) }, values[storage.KindCount](), storage.Reader.KindCounts)
	define(&kinds, &a.searches, func(search) storage.PostID { return storage.PostID{} }, lists[storage.UserID](), by(readSearches))
}

func define[Q comparable, V any](kinds *uint8, a *answers[Q, V], of func(Q) storage.PostID, form form[V], read func(storage.Reader, context.Context, []Q) []storage.Result[V]) {
	*kinds++
	a.number, a.of, a.form, a.read = *kinds, of, form, read
}

// by has the order of a method of [storage.Reader].
func by[Q, V any](read func(context.Context, storage.Reader, []Q) []storage.Result[V]) func(storage.Reader, context.Context, []Q) []storage.Result[V] {
	return func(r storage.Reader, ctx context.Context, questions []Q) []storage.Result[V] {
		return read(ctx, r, questions)
	}
}

// ofUser names a user as a post without a number.
func ofUser(id storage.UserID) storage.PostID { return storage.PostID{Author: id} }

// said is an answer, in its form, and behind that a byte that says whether something was found.
type said struct {
	lifetime
	data []byte
}

func (s *said) bytes() int { return len(s.data) }

func (a *answers[Q, V]) result(s *said) (r storage.Result[V]) {
	end := len(s.data) - 1
	if r.Found = s.data[end] == 1; r.Found {
		r.Value = a.form.parse(s.data[:end])
	}
	return r
}

// key has the version in it. Without one, no two keys are the same: what is read is for the asker alone, and is not kept.
func (a *answers[Q, V]) key(c *Cache, q Q) key {
	of := a.of(q)
	k := key{kind: answerKind, id: of.Author, stamp: c.stampOf(of)}
	if k.stamp == 0 {
		k.number = c.unkept.Add(1)
		return k
	}
	k.number = int64(maphash.Comparable(c.seed, struct {
		number uint8
		q      Q
	}{a.number, q}))
	return k
}

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
func (a *answers[Q, V]) fetch(ctx context.Context, c *Cache, questions []Q) []storage.Result[V] {
	if c.Mode() != On || ctx.Err() != nil {
		return a.read(c.Reader, ctx, questions)
	}
	a.learn(ctx, c, questions)
	return fetch(ctx, c, &a.fills, source[Q, V]{
		kind: answerKind, key: func(q Q) key { return a.key(c, q) }, known: known(c, a.result),
		read: func(ctx context.Context, q []Q) []storage.Result[V] { return a.read(c.Reader, ctx, q) },
		keep: func(k key, r storage.Result[V], _ []storage.Edge) storage.Result[V] {
			if k.stamp != 0 {
				data, found := make([]byte, 0, 64), byte(0)
				if r.Found {
					data, found = a.form.add(data, r.Value), 1
				}
				c.set(k, &said{c.lives(keep), append(data, found)})
			}
			return r
		},
	}, questions)
}

// inMemory answers one question, if the cache has the answer.
func (a *answers[Q, V]) inMemory(c *Cache, q Q) (r storage.Result[V], ok bool) {
	s, ok := get[*said](c, a.key(c, q))
	if ok {
		r = a.result(s)
	}
	return r, ok
}

// learn reads the users and posts whose versions are not known.
func (a *answers[Q, V]) learn(ctx context.Context, c *Cache, questions []Q) {
	var users []storage.UserID
	var posts []storage.PostID
	for _, q := range questions {
		switch of := a.of(q); {
		case c.stampOf(of) != 0:
		case of.Number == 0:
			users = append(users, of.Author)
		default:
			posts = append(posts, of)
		}
	}
	if len(users) > 0 {
		c.fetchProfiles(ctx, users)
	}
	if len(posts) > 0 {
		c.Posts(ctx, posts)
	}
}

// CountEdges implements [storage.RelationReader].
func (c *Cache) CountEdges(ctx context.Context, side storage.Side, queries []storage.EdgeCountQuery) []storage.Result[int] {
	return c.answers.edgeCounts[side].fetch(ctx, c, queries)
}

// Marks implements [storage.RelationReader].
func (c *Cache) Marks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	results, rest := make([]storage.Result[storage.EdgeMark], len(pairs)), []int(nil)
	for i, p := range pairs {
		if ctx.Err() != nil || !c.hasNoMark(p) {
			rest = append(rest, i)
		}
	}
	for k, r := range c.answers.marks.fetch(ctx, c, storage.Chosen(pairs, rest)) {
		results[rest[k]] = r
	}
	return results
}

// hasNoMark reports that the cache knows that there is no follow, which a mark needs.
func (c *Cache) hasNoMark(p storage.Pair) bool {
	if c.Mode() != On {
		return false
	}
	of, ok := get[*list](c, key{kind: forwardKind, id: p.From})
	if !ok {
		return false
	}
	edge, sure := of.edge(p)
	return sure && edge.Value.Type != storage.Following
}

// shortRows is up to how many requests or favorites of a user are kept whole: then it is known of everybody else, and of all other
// posts, that there is none.
const shortRows = 256

func rowsOf(side storage.Side, p storage.Pair) storage.RowsQuery {
	return storage.RowsQuery{Side: side, Owner: side.Owner(p), Limit: shortRows + 1}
}

// readShortRows does not find rows that are too many.
func readShortRows(ctx context.Context, r storage.Reader, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	results := r.AllRows(ctx, queries)
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

// besideEdges answers edges of requests and favorites. Of one that has ended, it may say that there is none.
func (c *Cache) besideEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	of := &c.answers.edges[side]
	if c.Mode() != On || ctx.Err() != nil || side == storage.FavoriteInbox {
		return of.fetch(ctx, c, pairs)
	}
	var owners []storage.RowsQuery
	for _, p := range pairs {
		if q := rowsOf(side, p); len(owners) <= fillOwners && !slices.Contains(owners, q) {
			owners = append(owners, q)
		}
	}
	if len(owners) > fillOwners {
		return of.fetch(ctx, c, pairs)
	}
	results, rest := make([]storage.Result[storage.Edge], len(pairs)), []int(nil)
	all := c.answers.rows.fetch(ctx, c, owners)
	for i, p := range pairs {
		if r := all[slices.Index(owners, rowsOf(side, p))]; r.Found {
			results[i] = edgeIn(r.Value, side, p)
		} else {
			rest = append(rest, i)
		}
	}
	for k, r := range of.fetch(ctx, c, storage.Chosen(pairs, rest)) {
		results[rest[k]] = r
	}
	return results
}

// besideEdge is an edge of requests or favorites, if it is known.
func (c *Cache) besideEdge(side storage.Side, p storage.Pair) (r storage.Result[storage.Edge], ok bool) {
	if all, _ := c.answers.rows.inMemory(c, rowsOf(side, p)); all.Found {
		return edgeIn(all.Value, side, p), true
	}
	return c.answers.edges[side].inMemory(c, p)
}

// Messages implements [storage.RelationReader].
func (c *Cache) Messages(ctx context.Context, requests []storage.Pair) []storage.Result[string] {
	return c.answers.messages.fetch(ctx, c, requests)
}

// Specials implements [storage.RelationReader].
func (c *Cache) Specials(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return c.answers.specials.fetch(ctx, c, users)
}

// CommentPages implements [storage.CommentReader].
func (c *Cache) CommentPages(ctx context.Context, queries []storage.CommentsQuery) []storage.Result[[]storage.Comment] {
	return c.answers.comments.fetch(ctx, c, queries)
}

// FavoritePages implements [storage.FavoriteReader].
func (c *Cache) FavoritePages(ctx context.Context, queries []storage.FavoritesQuery) []storage.Result[[]storage.Edge] {
	return c.answers.favorites.fetch(ctx, c, queries)
}

// Details implements [storage.ItemReader].
func (c *Cache) Details(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Detail] {
	return c.answers.details.fetch(ctx, c, pairs)
}

// KindCounts implements [storage.ItemReader].
func (c *Cache) KindCounts(ctx context.Context, of []storage.OwnerKind) []storage.Result[storage.KindCount] {
	return c.answers.kinds.fetch(ctx, c, of)
}

// mostAuthors bounds the authors of one feed about whom it is kept when they have posted last.
const mostAuthors = 500

// LastPosts implements [storage.RecentPostReader].
func (c *Cache) LastPosts(ctx context.Context, authors []storage.UserID, upTo storage.Micros) []storage.Result[storage.Micros] {
	if len(authors) > mostAuthors {
		return c.Reader.LastPosts(ctx, authors, upTo)
	}
	return c.answers.lastPosts.fetch(ctx, c, storage.Each(authors, func(id storage.UserID) lastPost { return lastPost{id, upTo} }))
}

// readLastPosts reads by time: callers that ask at the same moment may ask about several.
func readLastPosts(ctx context.Context, r storage.Reader, questions []lastPost) []storage.Result[storage.Micros] {
	results := make([]storage.Result[storage.Micros], len(questions))
	at := make(map[storage.Micros][]int)
	for i, q := range questions {
		at[q.upTo] = append(at[q.upTo], i)
	}
	for upTo, where := range at {
		authors := storage.Each(where, func(i int) storage.UserID { return questions[i].author })
		for k, last := range r.LastPosts(ctx, authors, upTo) {
			results[where[k]] = last
		}
	}
	return results
}

// WithWord implements [storage.WordReader].
func (c *Cache) WithWord(ctx context.Context, prefix string, limit int) ([]storage.UserID, error) {
	r := c.answers.searches.fetch(ctx, c, []search{{prefix, limit}})[0]
	return r.Value, r.Err
}

func readSearches(ctx context.Context, r storage.Reader, searches []search) []storage.Result[[]storage.UserID] {
	return storage.Each(searches, func(s search) storage.Result[[]storage.UserID] {
		ids, err := r.WithWord(ctx, s.prefix, s.limit)
		return storage.Result[[]storage.UserID]{Value: ids, Found: err == nil, Err: err}
	})
}

// PostPages implements [storage.PostReader]. Of a page, the ids are kept: its posts change more often than it does.
func (c *Cache) PostPages(ctx context.Context, queries []storage.PostsQuery) []storage.Result[[]storage.Post] {
	results := c.answers.postPages.fetch(ctx, c, queries)
	if !c.complete(results, func(ids []storage.PostID) []storage.Result[storage.Post] { return c.Posts(ctx, ids) }) {
		return c.Reader.PostPages(ctx, queries) // a post has been deleted in between
	}
	return results
}

// complete gives pages of ids their posts. It returns false if one could not be read.
func (c *Cache) complete(pages []storage.Result[[]storage.Post], read func([]storage.PostID) []storage.Result[storage.Post]) bool {
	var ids []storage.PostID
	var where []*storage.Post
	for k := range pages {
		if slices.ContainsFunc(pages[k].Value, func(p storage.Post) bool { return p.CreatedAt == 0 }) {
			pages[k].Value = slices.Clone(pages[k].Value) // others may have the same page
		}
		for i := range pages[k].Value {
			if p := &pages[k].Value[i]; p.CreatedAt == 0 {
				ids, where = append(ids, p.PostID), append(where, p)
			}
		}
	}
	if len(ids) == 0 {
		return true
	}
	posts := read(ids)
	for i, r := range posts {
		if !r.Found {
			return false
		}
		*where[i] = r.Value
	}
	return len(posts) > 0
}

func (c *Cache) postsAtHand(ids []storage.PostID) []storage.Result[storage.Post] {
	l := storage.Lookup[storage.PostID, storage.Post]{Keys: ids}
	atHand(c, postKind, c.postKey, &l, (*post).result)
	return l.Results
}

func addPostIDs(to []byte, page []storage.Post) []byte {
	for _, p := range page {
		to = append(to, bytesOf([]storage.PostID{p.PostID})...)
	}
	return to
}

func parsePostIDs(data []byte) []storage.Post {
	return storage.Each(lists[storage.PostID]().parse(data), func(id storage.PostID) storage.Post { return storage.Post{PostID: id} })
}

func addDetail(to []byte, d storage.Detail) []byte {
	return append(binary.AppendVarint(to, int64(d.EndsAt)), d.Attributes...)
}

func parseDetail(data []byte) storage.Detail {
	at, n := binary.Varint(data)
	return storage.Detail{EndsAt: storage.Micros(at), Attributes: string(data[n:])}
}

// lists is the form of lists of values without pointers.
func lists[T any]() form[[]T] {
	return form[[]T]{
		func(to []byte, list []T) []byte { return append(to, bytesOf(list)...) },
		func(data []byte) []T { all, _ := taken[T](data, len(data)/sizeOf[T]()); return slices.Clone(all) },
	}
}

// rows is the form of rows, which are read in place: bytes of the cache are never changed.
var rows = form[[]storage.Edge]{lists[storage.Edge]().add, func(data []byte) []storage.Edge {
	all, _ := taken[storage.Edge](data, len(data)/sizeOf[storage.Edge]())
	return all
}}

// values is the form of values without pointers.
func values[T any]() form[T] {
	return form[T]{
		func(to []byte, v T) []byte { return append(to, bytesOf([]T{v})...) },
		func(data []byte) T { return valuesOf[T](data, 1)[0] },
	}
}
