package storage

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// A Bundle holds look-ups of several kinds that are known at the same time, with room for their
// answers. Requests ask a store in bundles, see [Bundler]. A kind that is not asked for is nil.
type Bundle struct {
	Users   *Lookup[UserID, User]
	Handles *Lookup[string, UserID]
	Counts  *Lookup[UserID, Counts]

	Rows *Lookup[RowsQuery, []Edge] // [EdgeReader].AllRows

	Edges      [len(AllSides)]*Lookup[Pair, Edge] // by [Side], like all of these
	Pages      [len(AllSides)]*Lookup[PageQuery, []Edge]
	Neighbours [4]*Lookup[UserID, []UserID]
	Packed     [4]*Lookup[UserID, []UserID] // [PackedReader].PackedNeighbours

	// Sets are lists in the form in which a cache keeps them for set algebra. A list that the cache
	// does not keep is not Found, and without a cache none is: its rows are read instead.
	Sets [4]*Lookup[UserID, Set]
	// Recommenders are users as suggestions need them. Only a cache keeps recommenders: users whom
	// it does not keep are not Found. Visibility and count are read by Users and Counts instead,
	// lists as Sets or Neighbours.
	Recommenders *Lookup[UserID, Recommender]

	Blocks   *Lookup[UserID, []UserID]
	Specials *Lookup[UserID, []UserID]
	Marks    *Lookup[Pair, EdgeMark]
	Messages *Lookup[Pair, string]
	Details  *Lookup[Pair, Detail]
	Kinds    *Lookup[OwnerKind, KindCount]
	Lists    *Lookup[ListsQuery, []UserList]

	Posts        *Lookup[PostID, Post]
	PostPages    *Lookup[PostsQuery, []Post]
	Comments     *Lookup[CommentID, Comment]
	CommentPages *Lookup[CommentsQuery, []Comment]

	FavoritePages *Lookup[FavoritesQuery, []Edge]
}

// Set is a list as a set: a *[kith/storage/cache/idset.List].
type Set interface{ Len() int }

// Recommender is what suggestions need of a user: whom it follows, and who may see that.
type Recommender struct {
	Visibility Visibility // of its followings
	Following  int64      // how many they are, by its counts

	// Followings is a [kith/storage/cache/idset.Compact] of Directory, a *[kith/storage/cache/idset.Directory].
	Followings string
	Directory  Set
}

// Lookup holds keys of one kind and, once it is answered, a Result for each, at its index. It
// follows the contract of the method of [Reader] with its name.
type Lookup[K, V any] struct {
	Keys    []K
	Results []Result[V] // nil: not answered yet
}

// Bundler answers bundles. Requests read from a store through nothing else.
type Bundler interface {
	// AtHand answers what it can of a bundle from this process's memory: of each kind, either all
	// keys or none. It does no I/O and does not wait.
	AtHand(b *Bundle)

	// Bundle answers every open look-up of a bundle, in as few statements as possible. A failure affects all keys of the same shard.
	Bundle(ctx context.Context, b *Bundle)
}

// Open reports whether the look-up has keys but no answers yet.
func (l *Lookup[K, V]) Open() bool { return l != nil && l.Results == nil }

// Fail answers all keys with an error.
func (l *Lookup[K, V]) Fail(err error) {
	l.Results = make([]Result[V], len(l.Keys))
	for i := range l.Results {
		l.Results[i].Err = err
	}
}

// ReadEach answers every open look-up of a bundle, concurrently. It finds no sets and no recommenders. If
// both users and counts are asked for, Profiles reads them together. Each other kind is read by its method.
func (b *Bundle) ReadEach(ctx context.Context, r Reader) {
	b.WithoutSets()
	others := *b
	var reads []func()
	if b.Users.Open() && b.Counts.Open() {
		reads = append(reads, func() { b.People(func(ids []UserID) []Result[Profile] { return r.Profiles(ctx, ids) }) })
		others.Users, others.Counts = nil, nil
	}
	others.each(func(l asked) {
		if l.open {
			reads = append(reads, func() { l.answer(ctx, r) })
		}
	})
	var beside sync.WaitGroup
	defer beside.Wait()
	for i, read := range reads {
		if i+1 < len(reads) {
			beside.Go(read)
		} else {
			read()
		}
	}
}

// WithoutSets answers what only caches keep, sets and recommenders, for a store that keeps none: nothing is Found.
func (b *Bundle) WithoutSets() {
	for _, l := range b.Sets {
		if l.Open() {
			l.Results = make([]Result[Set], len(l.Keys))
		}
	}
	if l := b.Recommenders; l.Open() {
		l.Results = make([]Result[Recommender], len(l.Keys))
	}
}

// People answers users and counts by one read of both. A read that panics counts as failed.
func (b *Bundle) People(read func([]UserID) []Result[Profile]) {
	ids := b.Users.Keys
	if !slices.Equal(ids, b.Counts.Keys) {
		ids = slices.Concat(b.Users.Keys, b.Counts.Keys) // a store reads each once
	}
	both := Lookup[UserID, Profile]{Keys: ids}
	both.answer(read)
	b.Users.Results = make([]Result[User], len(b.Users.Keys))
	for i, r := range both.Results[:len(b.Users.Keys)] {
		b.Users.Results[i] = Result[User]{Value: r.Value.User, Found: r.Value.Exists, Err: r.Err}
	}
	b.Counts.Results = make([]Result[Counts], len(b.Counts.Keys))
	for i, r := range both.Results[len(ids)-len(b.Counts.Keys):] {
		b.Counts.Results[i] = Result[Counts]{Value: r.Value.Counts, Found: r.Value.Counted, Err: r.Err}
	}
}

// answer reads the keys. A read that panics counts as failed.
func (l *Lookup[K, V]) answer(read func([]K) []Result[V]) {
	defer func() {
		if reason := recover(); reason != nil {
			l.Fail(fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack()))
		}
	}()
	l.Results = read(l.Keys)
}

// LookupKind is a kind of look-up: where bundles have it, and whose rows it asks for.
type LookupKind[K, V any] struct {
	// In is where a bundle has the look-up on a side. Of a kind that has no sides, any side is the same.
	In func(*Bundle, Side) **Lookup[K, V]

	// Owner is the user whose rows a key asks for on a side, and their side; nil if it does not ask for relations.
	Owner func(Side, K) (Side, UserID)
}

// The kinds. A new kind is an entry here and a field of [Bundle].
var (
	UserLookups   = kindOf("users", nil, Reader.Users, func(b *Bundle) **Lookup[UserID, User] { return &b.Users })
	HandleLookups = kindOf("handles", nil, Reader.UserIDs, func(b *Bundle) **Lookup[string, UserID] { return &b.Handles })
	CountLookups  = kindOf("counts", nil, Reader.Counts, func(b *Bundle) **Lookup[UserID, Counts] { return &b.Counts })

	RowLookups = kindOf("rows", func(_ Side, q RowsQuery) (Side, UserID) { return q.Side, q.Owner }, Reader.AllRows,
		func(b *Bundle) **Lookup[RowsQuery, []Edge] { return &b.Rows })
	EdgeLookups = kindBySide("edges", func(s Side, p Pair) (Side, UserID) { return s, s.Owner(p) }, Reader.Edges,
		func(b *Bundle) []*Lookup[Pair, Edge] { return b.Edges[:] })
	PageLookups = kindBySide("pages", func(s Side, q PageQuery) (Side, UserID) { return s, q.Owner }, Reader.Pages,
		func(b *Bundle) []*Lookup[PageQuery, []Edge] { return b.Pages[:] })
	NeighbourLookups = kindBySide("neighbours", ofUser, Reader.Neighbours, func(b *Bundle) []*Lookup[UserID, []UserID] { return b.Neighbours[:] })
	PackedLookups    = kindBySide("packed", ofUser, Reader.PackedNeighbours, func(b *Bundle) []*Lookup[UserID, []UserID] { return b.Packed[:] })

	SetLookups         = kindBySide("sets", ofUser, nil, func(b *Bundle) []*Lookup[UserID, Set] { return b.Sets[:] })
	RecommenderLookups = kindOf("recommenders", ofUser, nil, func(b *Bundle) **Lookup[UserID, Recommender] { return &b.Recommenders })

	BlockLookups   = kindOf("blocks", ofUser, Reader.Blocks, func(b *Bundle) **Lookup[UserID, []UserID] { return &b.Blocks })
	SpecialLookups = kindOf("specials", ofUser, Reader.Specials, func(b *Bundle) **Lookup[UserID, []UserID] { return &b.Specials })
	MarkLookups    = kindOf("marks", ofFirst, Reader.Marks, func(b *Bundle) **Lookup[Pair, EdgeMark] { return &b.Marks })
	DetailLookups  = kindOf("details", ofFirst, Reader.Details, func(b *Bundle) **Lookup[Pair, Detail] { return &b.Details })
	KindLookups    = kindOf("kinds", nil, Reader.KindCounts, func(b *Bundle) **Lookup[OwnerKind, KindCount] { return &b.Kinds })
	ListLookups    = kindOf("lists", nil, Reader.UserLists, func(b *Bundle) **Lookup[ListsQuery, []UserList] { return &b.Lists })
	MessageLookups = kindOf("messages", ofFirst, Reader.Messages, func(b *Bundle) **Lookup[Pair, string] { return &b.Messages })

	PostLookups        = kindOf("posts", nil, Reader.Posts, func(b *Bundle) **Lookup[PostID, Post] { return &b.Posts })
	PostPageLookups    = kindOf("posts.pages", nil, Reader.PostPages, func(b *Bundle) **Lookup[PostsQuery, []Post] { return &b.PostPages })
	CommentLookups     = kindOf("comments", nil, Reader.Comments, func(b *Bundle) **Lookup[CommentID, Comment] { return &b.Comments })
	CommentPageLookups = kindOf("comments.pages", nil, Reader.CommentPages, func(b *Bundle) **Lookup[CommentsQuery, []Comment] { return &b.CommentPages })

	FavoritePageLookups = kindOf("pages.favorite", func(_ Side, q FavoritesQuery) (Side, UserID) { return Favorites, q.User }, Reader.FavoritePages,
		func(b *Bundle) **Lookup[FavoritesQuery, []Edge] { return &b.FavoritePages })
)

func ofUser(s Side, id UserID) (Side, UserID) { return s, id }

func ofFirst(s Side, p Pair) (Side, UserID) { return s, p.From }

// kinds visit the look-ups of each kind that a bundle has.
var kinds []func(b *Bundle, visit func(asked))

// asked is a look-up of a bundle.
type asked struct {
	AskedKind
	open   bool
	answer func(context.Context, Reader)
}

// each visits the look-ups of a bundle.
func (b *Bundle) each(visit func(asked)) {
	for _, of := range kinds {
		of(b, visit)
	}
}

// kindOf adds a kind, which a method of [Reader] reads; nil: only caches have it.
func kindOf[K, V any](
	name string, owner func(Side, K) (Side, UserID), read func(Reader, context.Context, []K) []Result[V], in func(*Bundle) **Lookup[K, V],
) *LookupKind[K, V] {
	kinds = append(kinds, func(b *Bundle, visit func(asked)) {
		if l := *in(b); l != nil {
			l.visit(name, visit, func(ctx context.Context, r Reader, keys []K) []Result[V] { return read(r, ctx, keys) })
		}
	})
	return &LookupKind[K, V]{func(b *Bundle, _ Side) **Lookup[K, V] { return in(b) }, owner}
}

// kindBySide is kindOf for a kind that has a look-up for each side.
func kindBySide[K, V any](
	name string, owner func(Side, K) (Side, UserID), read func(Reader, context.Context, Side, []K) []Result[V], in func(*Bundle) []*Lookup[K, V],
) *LookupKind[K, V] {
	kinds = append(kinds, func(b *Bundle, visit func(asked)) {
		for i, l := range in(b) {
			if side := Side(i); l != nil {
				l.visit(name+"."+side.String(), visit, func(ctx context.Context, r Reader, keys []K) []Result[V] { return read(r, ctx, side, keys) })
			}
		}
	})
	return &LookupKind[K, V]{func(b *Bundle, s Side) **Lookup[K, V] { return &in(b)[s] }, owner}
}

func (l *Lookup[K, V]) visit(name string, visit func(asked), read func(context.Context, Reader, []K) []Result[V]) {
	visit(asked{AskedKind{name, len(l.Keys)}, l.Open(), func(ctx context.Context, r Reader) {
		l.answer(func(keys []K) []Result[V] { return read(ctx, r, keys) })
	}})
}
