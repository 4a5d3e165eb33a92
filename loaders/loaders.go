// Package loaders batches what the resolvers of one request read from the store, and remembers it
// during the request. Keys that are known together are read together, at once, as
// one [storage.Bundle], and so is each step of answers of many steps (together.go). Relations are
// read by graph-gophers/dataloader (following.go).
package loaders

import (
	"context"
	"sync"
	"sync/atomic"

	"kith/storage"
)

// Loaders are the loaders of one request, and other values that it keeps.
type Loaders struct {
	// Users reads users by id.
	Users Loader[storage.UserID, storage.User]
	// Handles resolves folded handles.
	Handles Loader[string, storage.UserID]
	// Counts reads the counts of users.
	Counts Loader[storage.UserID, storage.Counts]

	// Once guards work that is done once in a request, whichever field comes first.
	Once sync.Once

	edges      [len(storage.AllSides)]lazy[storage.Pair, storage.Edge]
	pages      [4]lazy[storage.PageQuery, []storage.Edge]
	rows       lazy[storage.RowsQuery, []storage.Edge]
	neighbours [4]lazy[storage.UserID, []storage.UserID]
	packed     [4]lazy[storage.UserID, []storage.UserID]
	sets       [2]lazy[storage.UserID, storage.Set]

	recommenders lazy[storage.UserID, storage.Recommender]

	blocks   lazy[storage.UserID, []storage.UserID]
	marks    lazy[storage.Pair, storage.EdgeMark]
	specials lazy[storage.UserID, []storage.UserID]
	messages lazy[storage.Pair, string]

	posts        lazy[storage.PostID, storage.Post]
	postPages    lazy[storage.PostsQuery, []storage.Post]
	comments     lazy[storage.CommentID, storage.Comment]
	commentPages lazy[storage.CommentsQuery, []storage.Comment]

	favoritePages lazy[storage.FavoritesQuery, []storage.Edge]
	favoritedBy   lazy[storage.FavoritedByQuery, []storage.Edge]

	ctx   context.Context // of the request
	reads *storage.Reads  // of the request; nil: they are not counted
	store storage.Bundler
	made  atomic.Pointer[Relations] // of the request; nil: memory has answered everything

	mu     sync.Mutex
	beside []whole // batches that the next one of the relations takes along
	kept   []any   // each of a different type; there are one or two
}

// init makes the loaders of one request. ctx is the request's context.
func (l *Loaders) init(ctx context.Context, store storage.Bundler) {
	l.ctx, l.store, l.reads = ctx, store, storage.ReadsOf(ctx)
	l.Users.all, l.Users.kind = l, &users
	l.Handles.all, l.Handles.kind = l, &handles
	l.Counts.all, l.Counts.kind = l, &counts
}

// lazy is a loader that most requests do not need.
type lazy[K comparable, V any] struct{ made atomic.Pointer[Loader[K, V]] }

func (z *lazy[K, V]) of(l *Loaders, side storage.Side, k *kind[K, V]) *Loader[K, V] {
	if loader := z.made.Load(); loader != nil {
		return loader
	}
	z.made.CompareAndSwap(nil, &Loader[K, V]{all: l, side: side, kind: k})
	return z.made.Load()
}

// Edges reads single edges from one side: Forward for `from → to` on the shard of
// from, Inverse for `to ← from` on the shard of to.
func (l *Loaders) Edges(side storage.Side) *Loader[storage.Pair, storage.Edge] {
	return l.edges[side].of(l, side, &edges)
}

// Pages reads ranges of followings (Forward), of followers (Inverse) or of requests.
func (l *Loaders) Pages(side storage.Side) *Loader[storage.PageQuery, []storage.Edge] {
	return l.pages[side].of(l, side, &pages)
}

// Blocks lists who is in a block with a user.
func (l *Loaders) Blocks() *Loader[storage.UserID, []storage.UserID] {
	return l.blocks.of(l, 0, &blocks)
}

// Marks reads users' notes on their followings.
func (l *Loaders) Marks() *Loader[storage.Pair, storage.EdgeMark] { return l.marks.of(l, 0, &marks) }

// Specials lists the special follows of a user.
func (l *Loaders) Specials() *Loader[storage.UserID, []storage.UserID] {
	return l.specials.of(l, 0, &specials)
}

// Messages reads the messages of pending requests.
func (l *Loaders) Messages() *Loader[storage.Pair, string] { return l.messages.of(l, 0, &messages) }

// Posts reads posts.
func (l *Loaders) Posts() *Loader[storage.PostID, storage.Post] { return l.posts.of(l, 0, &posts) }

// PostPages reads ranges of the posts of authors.
func (l *Loaders) PostPages() *Loader[storage.PostsQuery, []storage.Post] {
	return l.postPages.of(l, 0, &postPages)
}

// Comments reads comments.
func (l *Loaders) Comments() *Loader[storage.CommentID, storage.Comment] {
	return l.comments.of(l, 0, &comments)
}

// CommentPages reads ranges of the comments on posts.
func (l *Loaders) CommentPages() *Loader[storage.CommentsQuery, []storage.Comment] {
	return l.commentPages.of(l, 0, &commentPages)
}

// FavoritePages reads ranges of what users have favorited.
func (l *Loaders) FavoritePages() *Loader[storage.FavoritesQuery, []storage.Edge] {
	return l.favoritePages.of(l, 0, &favoritePages)
}

// FavoritedBy reads ranges of who has favorited posts.
func (l *Loaders) FavoritedBy() *Loader[storage.FavoritedByQuery, []storage.Edge] {
	return l.favoritedBy.of(l, 0, &favoritedBy)
}

// Kept is a package's own value for the duration of a request. It is found by its type: there is
// one value of a type, zero at first.
func Kept[T any](l *Loaders) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kept := range l.kept {
		if value, ok := kept.(*T); ok {
			return value
		}
	}
	value := new(T)
	l.kept = append(l.kept, value)
	return value
}

type contextKey struct{}

// Attach gives a request its loaders. The request waits for a silent shard only once.
func Attach(ctx context.Context, store storage.Bundler) context.Context {
	ctx = storage.RememberOutages(ctx)
	a := &attached{Context: ctx}
	a.loaders.init(ctx, store)
	return a
}

// attached is a context with its loaders: one allocation, because every request has one.
type attached struct {
	context.Context
	loaders Loaders
}

func (a *attached) Value(key any) any {
	if key == (contextKey{}) {
		return &a.loaders
	}
	return a.Context.Value(key)
}

// For returns the loaders of the request. A context without loaders is a mistake in the program's
// wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}

// A kind is a look-up as a loader knows it.
type kind[K comparable, V any] struct {
	in func(*storage.Bundle, storage.Side) **lookup[K, V] // where a bundle has it

	// If it is about relations: whose rows a key asks for, and where the library's answers are.
	key  func(storage.Side, K) Key
	rows func(*Rows) *[]storage.Result[V]
}

// lookup is the part of a bundle that a loader fills.
type lookup[K comparable, V any] = storage.Lookup[K, V]

var (
	users = kind[storage.UserID, storage.User]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.User] { return &b.Users },
	}
	handles = kind[string, storage.UserID]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[string, storage.UserID] { return &b.Handles },
	}
	counts = kind[storage.UserID, storage.Counts]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.Counts] { return &b.Counts },
	}
	edges = kind[storage.Pair, storage.Edge]{
		in:   func(b *storage.Bundle, s storage.Side) **lookup[storage.Pair, storage.Edge] { return &b.Edges[s] },
		key:  func(s storage.Side, p storage.Pair) Key { return Key{Side: s, Owner: s.Owner(p)} },
		rows: func(r *Rows) *[]storage.Result[storage.Edge] { return &r.Edges },
	}
	pages = kind[storage.PageQuery, []storage.Edge]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.PageQuery, []storage.Edge] {
			return &b.Pages[s]
		},
		key:  func(s storage.Side, q storage.PageQuery) Key { return Key{Side: s, Owner: q.Owner} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	rows = kind[storage.RowsQuery, []storage.Edge]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.RowsQuery, []storage.Edge] { return &b.Rows },
		key:  func(_ storage.Side, q storage.RowsQuery) Key { return Key{Side: q.Side, Owner: q.Owner} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	neighbours = kind[storage.UserID, []storage.UserID]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, []storage.UserID] {
			return &b.Neighbours[s]
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	packed = kind[storage.UserID, []storage.UserID]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, []storage.UserID] {
			return &b.Packed[s]
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	sets = kind[storage.UserID, storage.Set]{
		in:   func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, storage.Set] { return &b.Sets[s] },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[storage.Set] { return &r.Sets },
	}
	recommenders = kind[storage.UserID, storage.Recommender]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.Recommender] {
			return &b.Recommenders
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[storage.Recommender] { return &r.Recommenders },
	}
	blocks = kind[storage.UserID, []storage.UserID]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, []storage.UserID] { return &b.Blocks },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	specials = kind[storage.UserID, []storage.UserID]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, []storage.UserID] { return &b.Specials },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	marks = kind[storage.Pair, storage.EdgeMark]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.Pair, storage.EdgeMark] { return &b.Marks },
		key:  ownPair,
		rows: func(r *Rows) *[]storage.Result[storage.EdgeMark] { return &r.Marks },
	}
	messages = kind[storage.Pair, string]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.Pair, string] { return &b.Messages },
		key:  ownPair,
		rows: func(r *Rows) *[]storage.Result[string] { return &r.Messages },
	}
	favoritePages = kind[storage.FavoritesQuery, []storage.Edge]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.FavoritesQuery, []storage.Edge] {
			return &b.FavoritePages
		},
		key:  func(_ storage.Side, q storage.FavoritesQuery) Key { return Key{Side: storage.Favorites, Owner: q.User} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	favoritedBy = kind[storage.FavoritedByQuery, []storage.Edge]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.FavoritedByQuery, []storage.Edge] {
			return &b.FavoritedBy
		},
		key: func(_ storage.Side, q storage.FavoritedByQuery) Key {
			return Key{Side: storage.FavoriteInbox, Owner: q.Post.Author}
		},
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	posts = kind[storage.PostID, storage.Post]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.PostID, storage.Post] { return &b.Posts },
	}
	postPages = kind[storage.PostsQuery, []storage.Post]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.PostsQuery, []storage.Post] {
			return &b.PostPages
		},
	}
	comments = kind[storage.CommentID, storage.Comment]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.CommentID, storage.Comment] {
			return &b.Comments
		},
	}
	commentPages = kind[storage.CommentsQuery, []storage.Comment]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.CommentsQuery, []storage.Comment] {
			return &b.CommentPages
		},
	}
)

func ownList(side storage.Side, id storage.UserID) Key { return Key{Side: side, Owner: id} }

func ownPair(side storage.Side, p storage.Pair) Key { return Key{Side: side, Owner: p.From} }
