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
	Pages      [4]*Lookup[PageQuery, []Edge]
	Neighbours [4]*Lookup[UserID, []UserID]
	Packed     [4]*Lookup[UserID, []UserID] // [PackedReader].PackedNeighbours

	// Sets are lists in the form in which a cache keeps them for set algebra. A list that the cache
	// does not keep is not Found, and without a cache none is: its rows are read instead.
	Sets [4]*Lookup[UserID, Set]
	// Recommenders are users as suggestions need them. Only a cache keeps recommenders: users whom
	// it does not keep are not Found. Visibility and count are read by Users and Counts instead,
	// lists as Sets or Neighbours.
	Recommenders *Lookup[UserID, Recommender]
	// Shared are users with their counts, which callers must not change. Only AtHand answers them.
	Shared *Lookup[UserID, *Profile]

	Blocks   *Lookup[UserID, []UserID]
	Specials *Lookup[UserID, []UserID]
	Marks    *Lookup[Pair, EdgeMark]
	Messages *Lookup[Pair, string]

	Posts        *Lookup[PostID, Post]
	PostPages    *Lookup[PostsQuery, []Post]
	Comments     *Lookup[CommentID, Comment]
	CommentPages *Lookup[CommentsQuery, []Comment]

	FavoritePages *Lookup[FavoritesQuery, []Edge]
	FavoritedBy   *Lookup[FavoritedByQuery, []Edge] // [FavoriteReader].FavoritedByPages
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

	// Bundle answers every open look-up of a bundle except Shared, in as few statements as
	// possible. A failure affects all keys of the same shard.
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

// Apart answers every open look-up of a bundle except Shared, concurrently. It finds no sets and no recommenders. If
// both users and counts are asked for, Profiles reads them together. Each other kind is read by the method with its
// name.
func (b *Bundle) Apart(ctx context.Context, r Reader) {
	var all apart
	if b.Users.Open() && b.Counts.Open() {
		all.add(func() { b.People(func(ids []UserID) []Result[Profile] { return r.Profiles(ctx, ids) }) })
	} else {
		read(&all, ctx, r, b.Users, Reader.Users)
		read(&all, ctx, r, b.Counts, Reader.Counts)
	}
	read(&all, ctx, r, b.Handles, Reader.UserIDs)
	read(&all, ctx, r, b.Rows, Reader.AllRows)
	for _, side := range AllSides {
		readSide(&all, ctx, r, side, b.Edges[side], Reader.Edges)
	}
	for _, side := range Sides {
		readSide(&all, ctx, r, side, b.Pages[side], Reader.Pages)
		readSide(&all, ctx, r, side, b.Neighbours[side], Reader.Neighbours)
		readSide(&all, ctx, r, side, b.Packed[side], Reader.PackedNeighbours)
	}
	b.WithoutSets()
	read(&all, ctx, r, b.Blocks, Reader.Blocks)
	read(&all, ctx, r, b.Specials, Reader.Specials)
	read(&all, ctx, r, b.Marks, Reader.Marks)
	read(&all, ctx, r, b.Messages, Reader.Messages)
	read(&all, ctx, r, b.Posts, Reader.Posts)
	read(&all, ctx, r, b.PostPages, Reader.PostPages)
	read(&all, ctx, r, b.Comments, Reader.Comments)
	read(&all, ctx, r, b.CommentPages, Reader.CommentPages)
	read(&all, ctx, r, b.FavoritePages, Reader.FavoritePages)
	read(&all, ctx, r, b.FavoritedBy, Reader.FavoritedByPages)
	all.run()
}

func read[K, V any](all *apart, ctx context.Context, r Reader, l *Lookup[K, V], by func(Reader, context.Context, []K) []Result[V]) {
	if l.Open() {
		all.add(func() { l.answer(func(keys []K) []Result[V] { return by(r, ctx, keys) }) })
	}
}

func readSide[K, V any](all *apart, ctx context.Context, r Reader, side Side, l *Lookup[K, V], by func(Reader, context.Context, Side, []K) []Result[V]) {
	if l.Open() {
		all.add(func() { l.answer(func(keys []K) []Result[V] { return by(r, ctx, side, keys) }) })
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

// apart runs reads concurrently, each but the last in its own goroutine.
type apart struct {
	last    func()
	started sync.WaitGroup
}

func (a *apart) add(read func()) {
	if a.last != nil {
		a.started.Go(a.last)
	}
	a.last = read
}

func (a *apart) run() {
	if a.last != nil {
		a.last()
	}
	a.started.Wait()
}
