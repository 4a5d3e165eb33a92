// Package loaders batches what the resolvers of one request ask the store: one
// dataloader for each look-up, on graph-gophers/dataloader. Every batch becomes
// an IN-query for each shard that owns some of its keys.
package loaders

import (
	"context"
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

	edges      [2]*Loader[storage.Pair, storage.Edge]
	pages      [2]*Loader[storage.PageQuery, []storage.Edge]
	walks      [2]*Loader[storage.WalkQuery, storage.Stretch]
	neighbours [2]*Loader[storage.UserID, []storage.UserID]

	store   storage.Reader
	flushes []func()
}

// New makes the loaders of one request, whose context it is.
func New(ctx context.Context, store storage.Reader) *Loaders {
	l := &Loaders{store: store}
	l.Users = newLoader(ctx, l, store.Users)
	l.Handles = newLoader(ctx, l, store.UserIDs)
	l.Counts = newLoader(ctx, l, store.Counts)
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		l.edges[side] = newLoader(ctx, l, of(side, store.Edges))
		l.pages[side] = newLoader(ctx, l, of(side, store.Pages))
		l.walks[side] = newLoader(ctx, l, of(side, store.Walks))
		l.neighbours[side] = newLoader(ctx, l, of(side, store.Neighbours))
	}
	return l
}

// of is a look-up of one side.
func of[K, V any](side storage.Side, read func(context.Context, storage.Side, []K) []storage.Result[V]) func(context.Context, []K) []storage.Result[V] {
	return func(ctx context.Context, keys []K) []storage.Result[V] { return read(ctx, side, keys) }
}

// Edges reads single edges from one side: Forward for `from → to` on the shard of
// from, Inverse for `to ← from` on the shard of to.
func (l *Loaders) Edges(side storage.Side) *Loader[storage.Pair, storage.Edge] { return l.edges[side] }

// Pages reads stretches of followings (Forward) or of followers (Inverse).
func (l *Loaders) Pages(side storage.Side) *Loader[storage.PageQuery, []storage.Edge] {
	return l.pages[side]
}

// question is keys asked of one loader.
type question interface{ enqueue() }

// Dispatch sends what has been asked, all of it at once: now, or for a member of
// the crowd together with what the others ask.
func (l *Loaders) Dispatch(ctx context.Context, asked ...question) {
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
	for _, flush := range l.flushes {
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
