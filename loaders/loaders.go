// Package loaders batches what the resolvers of one request ask the store: one
// dataloader for each look-up, on graph-gophers/dataloader. Every batch becomes
// an IN-query for each shard that owns some of its keys.
package loaders

import (
	"context"
	"reflect"
	"sync"

	"kith/storage"
)

// Loaders are the loaders of one request.
type Loaders struct {
	// Users reads users by id.
	Users *Loader[storage.UserID, storage.User]
	// Handles resolves folded handles.
	Handles *Loader[string, storage.UserID]
	// Counts reads the counts of users.
	Counts *Loader[storage.UserID, storage.Counts]

	// Once guards what is done once in a request, whichever field comes first.
	Once sync.Once
	// Crowd is the set answers that are computed side by side.
	Crowd Crowd

	edges      [4]lazy[storage.Pair, storage.Edge]
	pages      [4]lazy[storage.PageQuery, []storage.Edge]
	walks      [4]lazy[storage.WalkQuery, storage.Stretch]
	neighbours [4]lazy[storage.UserID, []storage.UserID]

	blocks   lazy[storage.UserID, []storage.UserID]
	marks    lazy[storage.Pair, storage.EdgeMark]
	specials lazy[storage.UserID, []storage.UserID]
	messages lazy[storage.Pair, string]

	ctx   context.Context // of the request
	store storage.Reader

	mu      sync.Mutex
	flushes []func()
	kept    map[reflect.Type]any
}

// New makes the loaders of one request, whose context it is.
func New(ctx context.Context, store storage.Reader) *Loaders {
	l := &Loaders{ctx: ctx, store: store}
	l.Users = newLoader(ctx, l, store.Users)
	l.Handles = newLoader(ctx, l, store.UserIDs)
	l.Counts = newLoader(ctx, l, store.Counts)
	return l
}

// lazy is a loader that most requests do without.
type lazy[K comparable, V any] struct {
	once   sync.Once
	loader *Loader[K, V]
}

func (z *lazy[K, V]) of(l *Loaders, read func(context.Context, []K) []storage.Result[V]) *Loader[K, V] {
	z.once.Do(func() { z.loader = newLoader(l.ctx, l, read) })
	return z.loader
}

// of is a look-up of one side.
func of[K, V any](side storage.Side, read func(context.Context, storage.Side, []K) []storage.Result[V]) func(context.Context, []K) []storage.Result[V] {
	return func(ctx context.Context, keys []K) []storage.Result[V] { return read(ctx, side, keys) }
}

// Edges reads single edges from one side: Forward for `from → to` on the shard of
// from, Inverse for `to ← from` on the shard of to.
func (l *Loaders) Edges(side storage.Side) *Loader[storage.Pair, storage.Edge] {
	return l.edges[side].of(l, of(side, l.store.Edges))
}

// Pages reads stretches of followings (Forward), of followers (Inverse) or of requests.
func (l *Loaders) Pages(side storage.Side) *Loader[storage.PageQuery, []storage.Edge] {
	return l.pages[side].of(l, of(side, l.store.Pages))
}

func (l *Loaders) walksOf(side storage.Side) *Loader[storage.WalkQuery, storage.Stretch] {
	return l.walks[side].of(l, of(side, l.store.Walks))
}

func (l *Loaders) neighboursOf(side storage.Side) *Loader[storage.UserID, []storage.UserID] {
	return l.neighbours[side].of(l, of(side, l.store.Neighbours))
}

// Blocks lists who is in a block with a user.
func (l *Loaders) Blocks() *Loader[storage.UserID, []storage.UserID] {
	return l.blocks.of(l, l.store.Blocks)
}

// Marks reads what users note on whom they follow.
func (l *Loaders) Marks() *Loader[storage.Pair, storage.EdgeMark] {
	return l.marks.of(l, l.store.Marks)
}

// Specials lists whom a user follows specially.
func (l *Loaders) Specials() *Loader[storage.UserID, []storage.UserID] {
	return l.specials.of(l, l.store.Specials)
}

// Messages reads what is written with requests that are pending.
func (l *Loaders) Messages() *Loader[storage.Pair, string] {
	return l.messages.of(l, l.store.Messages)
}

// Kept is what a package keeps for the length of a request, by its type: one value,
// zero at first.
func Kept[T any](l *Loaders) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := reflect.TypeFor[T]()
	value, ok := l.kept[key].(*T)
	if !ok {
		value = new(T)
		if l.kept == nil {
			l.kept = map[reflect.Type]any{}
		}
		l.kept[key] = value
	}
	return value
}

// A Question is keys asked of one loader.
type Question interface{ enqueue() }

// Dispatch sends what has been asked, all of it at once: now, or for a member of
// the crowd together with what the others ask.
func (l *Loaders) Dispatch(ctx context.Context, asked ...Question) {
	send := func() {
		for _, q := range asked {
			q.enqueue()
		}
	}
	if isMember(ctx) {
		l.Crowd.meet(ctx, send, l.flush)
		return
	}
	send()
	l.flush()
}

func (l *Loaders) flush() {
	l.mu.Lock()
	flushes := l.flushes
	l.mu.Unlock()
	for _, flush := range flushes {
		flush()
	}
}

type contextKey struct{}

// Attach gives a request its loaders. It waits for a silent shard once.
func Attach(ctx context.Context, store storage.Reader) context.Context {
	ctx = storage.RememberOutages(ctx)
	return context.WithValue(ctx, contextKey{}, New(ctx, store))
}

// For returns the loaders of the request. A context without them is a mistake in
// the program's wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}
