// Package loaders batches what the resolvers of one request ask the store, one loader
// for each look-up. Every batch becomes an IN-query for each shard that owns some of
// its keys. Keys that are known together leave together, at once; keys that come one
// by one are collected by graph-gophers/dataloader.
package loaders

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"kith/storage"
)

// Loaders are the loaders of one request.
type Loaders struct {
	// Users reads users by id.
	Users Loader[storage.UserID, storage.User]
	// Handles resolves folded handles.
	Handles Loader[string, storage.UserID]
	// Counts reads the counts of users.
	Counts Loader[storage.UserID, storage.Counts]

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

	ctx    context.Context // of the request
	store  storage.Reader
	atHand AtHand // the store; nil: it has nothing in memory

	profiles profileReader   // the store; nil: it reads users and counts apart
	bundler  storage.Bundler // the store; nil: it reads each kind apart

	mu   sync.Mutex
	kept []any // each of another type; there are one or two
}

// init makes the loaders of one request, whose context it is.
func (l *Loaders) init(ctx context.Context, store storage.Reader) {
	l.ctx, l.store, l.Crowd.all = ctx, store, l
	l.atHand, _ = store.(AtHand)
	l.profiles, _ = store.(profileReader)
	l.bundler, _ = store.(storage.Bundler)
	l.Users.all, l.Users.read, l.Users.near = l, storage.Reader.Users, AtHand.UsersAtHand
	l.Handles.all, l.Handles.read = l, storage.Reader.UserIDs
	l.Counts.all, l.Counts.read, l.Counts.near = l, storage.Reader.Counts, AtHand.CountsAtHand
}

// lazy is a loader that most requests do without.
type lazy[K comparable, V any] struct{ made atomic.Pointer[Loader[K, V]] }

func (z *lazy[K, V]) of(l *Loaders, read lookup[K, V], near near[K, V]) *Loader[K, V] {
	if loader := z.made.Load(); loader != nil {
		return loader
	}
	z.made.CompareAndSwap(nil, &Loader[K, V]{all: l, read: read, near: near})
	return z.made.Load()
}

// sided is a method of the store that answers keys from one side.
type sided[K comparable, V any] func(storage.Reader, context.Context, storage.Side, []K) []storage.Result[V]

// ofSide is the loader of one side. near is nil where nothing is ever at hand.
func (z *lazy[K, V]) ofSide(l *Loaders, side storage.Side, read sided[K, V], near sidedNear[K, V]) *Loader[K, V] {
	if loader := z.made.Load(); loader != nil {
		return loader
	}
	var nearOfSide func(AtHand, []K) ([]storage.Result[V], bool)
	if near != nil {
		nearOfSide = func(memory AtHand, keys []K) ([]storage.Result[V], bool) { return near(memory, side, keys) }
	}
	return z.of(l, func(store storage.Reader, ctx context.Context, keys []K) []storage.Result[V] {
		return read(store, ctx, side, keys)
	}, nearOfSide)
}

// Edges reads single edges from one side: Forward for `from → to` on the shard of
// from, Inverse for `to ← from` on the shard of to.
func (l *Loaders) Edges(side storage.Side) *Loader[storage.Pair, storage.Edge] {
	return l.edges[side].ofSide(l, side, storage.Reader.Edges, AtHand.EdgesAtHand)
}

// Pages reads stretches of followings (Forward), of followers (Inverse) or of requests.
func (l *Loaders) Pages(side storage.Side) *Loader[storage.PageQuery, []storage.Edge] {
	return l.pages[side].ofSide(l, side, storage.Reader.Pages, AtHand.PagesAtHand)
}

func (l *Loaders) walksOf(side storage.Side) *Loader[storage.WalkQuery, storage.Stretch] {
	return l.walks[side].ofSide(l, side, storage.Reader.Walks, nil)
}

func (l *Loaders) neighboursOf(side storage.Side) *Loader[storage.UserID, []storage.UserID] {
	return l.neighbours[side].ofSide(l, side, storage.Reader.Neighbours, nil)
}

// Blocks lists who is in a block with a user.
func (l *Loaders) Blocks() *Loader[storage.UserID, []storage.UserID] {
	return l.blocks.of(l, storage.Reader.Blocks, AtHand.BlocksAtHand)
}

// Marks reads what users note on whom they follow.
func (l *Loaders) Marks() *Loader[storage.Pair, storage.EdgeMark] {
	return l.marks.of(l, storage.Reader.Marks, nil)
}

// Specials lists whom a user follows specially.
func (l *Loaders) Specials() *Loader[storage.UserID, []storage.UserID] {
	return l.specials.of(l, storage.Reader.Specials, nil)
}

// Messages reads what is written with requests that are pending.
func (l *Loaders) Messages() *Loader[storage.Pair, string] {
	return l.messages.of(l, storage.Reader.Messages, nil)
}

// Kept is what a package keeps for the length of a request, by its type: one value,
// zero at first.
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

// A Question is keys asked of one loader.
type Question interface {
	claim()     // has the keys sent with the loader's next batch
	take() task // that batch; nil if there is none
}

// task is a batch to run.
type task interface {
	answer() bool // from memory; false if it has to be run
	run()
	fail(error) // instead of run
}

// Dispatch sends what has been asked, all of it at once: now, or for a member of
// the crowd together with what the others ask. It may return before the answers are
// there.
func (l *Loaders) Dispatch(ctx context.Context, asked ...Question) {
	if l.isMember(ctx) {
		l.Crowd.meet(ctx, asked)
		return
	}
	runAll(l.bundled(slices.DeleteFunc(tasksOf(asked), task.answer)))
}

// tasksOf are the batches that questions make together.
func tasksOf(asked []Question) []task {
	for _, q := range asked {
		q.claim()
	}
	tasks := make([]task, 0, len(asked))
	for _, q := range asked {
		if t := q.take(); t != nil {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

type contextKey struct{}

// Attach gives a request its loaders. It waits for a silent shard once.
func Attach(ctx context.Context, store storage.Reader) context.Context {
	ctx = storage.RememberOutages(ctx)
	a := &attached{Context: ctx}
	a.loaders.init(ctx, store)
	return a
}

// attached is a context with its loaders: one allocation, where every request has one.
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

// For returns the loaders of the request. A context without them is a mistake in
// the program's wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}
