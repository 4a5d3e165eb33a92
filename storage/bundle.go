package storage

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// A Bundle holds look-ups of several kinds that are known at the same time, with room for their
// answers. Requests ask a store in bundles, see [Bundler]. Each [LookupKind] has its place in it.
type Bundle struct{ lookups [maxKinds]lookup }

// lookup is a [Lookup].
type lookup interface {
	Open() bool
	keys() int
	none()
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

// keys is how many keys there are.
func (l *Lookup[K, V]) keys() int { return len(l.Keys) }

// none answers that nothing is Found.
func (l *Lookup[K, V]) none() { l.Results = make([]Result[V], len(l.Keys)) }

// ReadEach answers every open look-up of a bundle, concurrently. It finds nothing of what only caches keep. If both users and counts
// are asked for, Profiles reads them together. Each other kind is read by its method.
func (b *Bundle) ReadEach(ctx context.Context, r Reader) {
	b.WithoutCache()
	var reads []func()
	users, counts := UserLookups.In(b), CountLookups.In(b)
	together := users.Open() && counts.Open()
	if together {
		reads = append(reads, func() { readPeople(ctx, r, users, counts) })
	}
	for number, l := range &b.lookups {
		if l != nil && l.Open() && !(together && (l == lookup(users) || l == lookup(counts))) {
			reads = append(reads, func() { kinds[number].answer(ctx, r, l) })
		}
	}
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

// WithoutCache answers look-ups of what only caches keep, for a store that keeps nothing: nothing is Found.
func (b *Bundle) WithoutCache() {
	for number, l := range &b.lookups {
		if l != nil && l.Open() && kinds[number].answer == nil {
			l.none()
		}
	}
}

// asked is what the bundle asks for.
func (b *Bundle) asked() (asked []AskedKind) {
	for number, l := range &b.lookups {
		if l != nil && l.keys() > 0 {
			asked = append(asked, AskedKind{kinds[number].name, l.keys()})
		}
	}
	return asked
}

// readPeople answers users and counts by one read of both. A read that panics counts as failed.
func readPeople(ctx context.Context, r Reader, users *Lookup[UserID, User], counts *Lookup[UserID, Counts]) {
	ids := users.Keys
	if !slices.Equal(ids, counts.Keys) {
		ids = slices.Concat(users.Keys, counts.Keys) // a store reads each once
	}
	both := Lookup[UserID, Profile]{Keys: ids}
	both.answer(func(ids []UserID) []Result[Profile] { return r.Profiles(ctx, ids) })
	users.Results = make([]Result[User], len(users.Keys))
	for i, r := range both.Results[:len(users.Keys)] {
		users.Results[i] = Result[User]{Value: r.Value.User, Found: r.Value.Exists, Err: r.Err}
	}
	counts.Results = make([]Result[Counts], len(counts.Keys))
	for i, r := range both.Results[len(ids)-len(counts.Keys):] {
		counts.Results[i] = Result[Counts]{Value: r.Value.Counts, Found: r.Value.Counted, Err: r.Err}
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

// LookupKind is a kind of look-up: what it is called, where bundles have it, and whose rows it asks for. Kinds by side are one kind for
// each.
type LookupKind[K, V any] struct {
	number int

	// Owner is the user whose rows a key asks for, and the side; nil if it does not ask for relations.
	Owner func(K) (Side, UserID)
}

// maxKinds is more than there are kinds.
const maxKinds = 44

// kinds are all of them, at their numbers.
var kinds []kind

type kind struct {
	name   string
	answer func(context.Context, Reader, lookup) // nil: only caches have it
	ask    func(*Bundle) any
}

// In is the look-up of the kind in a bundle, nil if it does not ask for it.
func (k *LookupKind[K, V]) In(b *Bundle) *Lookup[K, V] {
	l, _ := b.lookups[k.number].(*Lookup[K, V])
	return l
}

// Put has a bundle ask for a look-up, and Ask for some keys.
func (k *LookupKind[K, V]) Put(b *Bundle, l *Lookup[K, V]) { b.lookups[k.number] = l }

func (k *LookupKind[K, V]) Ask(b *Bundle, keys ...K) *Lookup[K, V] {
	l := &Lookup[K, V]{Keys: keys}
	k.Put(b, l)
	return l
}

// Remove is In, and the bundle does not ask for it any more.
func (k *LookupKind[K, V]) Remove(b *Bundle) *Lookup[K, V] {
	defer func() { b.lookups[k.number] = nil }()
	return k.In(b)
}

// EachKind calls visit with the name of each kind, with what has a bundle ask for it, by a *[Lookup] without keys, and with whether only
// caches have it.
func EachKind(visit func(name string, ask func(*Bundle) any, cached bool)) {
	for _, k := range kinds {
		visit(k.name, k.ask, k.answer == nil)
	}
}

// NewLookupKind adds a kind, which a method of [Reader] reads; nil: only caches have it. It is for variables of packages.
func NewLookupKind[K, V any](name string, owner func(K) (Side, UserID), read func(Reader, context.Context, []K) []Result[V]) *LookupKind[K, V] {
	k := &LookupKind[K, V]{len(kinds), owner}
	kinds = append(kinds, kind{name: name, ask: func(b *Bundle) any { return k.Ask(b) }})
	if read != nil {
		kinds[k.number].answer = func(ctx context.Context, r Reader, l lookup) {
			l.(*Lookup[K, V]).answer(func(keys []K) []Result[V] { return read(r, ctx, keys) })
		}
	}
	return k
}

// The kinds.
var (
	UserLookups   = NewLookupKind("users", nil, Reader.Users)
	HandleLookups = NewLookupKind("handles", nil, Reader.UserIDs)
	CountLookups  = NewLookupKind("counts", nil, Reader.Counts)

	RowLookups       = NewLookupKind("rows", func(q RowsQuery) (Side, UserID) { return q.Side, q.Owner }, Reader.AllRows)
	EdgeLookups      = bySide(AllSides[:], "edges", Side.Owner, Reader.Edges)
	PageLookups      = bySide(AllSides[:], "pages", func(_ Side, q PageQuery) UserID { return q.Owner }, Reader.Pages)
	NeighbourLookups = bySide(Sides[:], "neighbours", sideUser, Reader.Neighbours)
	PackedLookups    = bySide(Sides[:], "packed", sideUser, Reader.PackedNeighbours)

	BlockLookups   = NewLookupKind("blocks", ofUser, Reader.Blocks)
	SpecialLookups = NewLookupKind("specials", ofUser, Reader.Specials)
	MarkLookups    = NewLookupKind("marks", ofFirst, Reader.Marks)
	DetailLookups  = NewLookupKind("details", ofFirst, Reader.Details)
	KindLookups    = NewLookupKind("kinds", nil, Reader.KindCounts)
	ListLookups    = NewLookupKind("lists", nil, Reader.UserLists)
	MessageLookups = NewLookupKind("messages", ofFirst, Reader.Messages)

	PostLookups        = NewLookupKind("posts", nil, Reader.Posts)
	PostPageLookups    = NewLookupKind("posts.pages", nil, Reader.PostPages)
	CommentLookups     = NewLookupKind("comments", nil, Reader.Comments)
	CommentPageLookups = NewLookupKind("comments.pages", nil, Reader.CommentPages)

	FavoritePageLookups = NewLookupKind("pages.favorite", func(q FavoritesQuery) (Side, UserID) { return Favorites, q.User }, Reader.FavoritePages)
)

func ofUser(id UserID) (Side, UserID) { return Forward, id }

func ofFirst(p Pair) (Side, UserID) { return Forward, p.From }

func sideUser(_ Side, id UserID) UserID { return id }

// bySide adds a kind for each side, at the index of the side.
func bySide[K, V any](sides []Side, name string, owner func(Side, K) UserID, read func(Reader, context.Context, Side, []K) []Result[V]) []*LookupKind[K, V] {
	return Each(sides, func(side Side) *LookupKind[K, V] {
		return NewLookupKind(name+"."+side.String(), func(key K) (Side, UserID) { return side, owner(side, key) },
			func(r Reader, ctx context.Context, keys []K) []Result[V] { return read(r, ctx, side, keys) })
	})
}
