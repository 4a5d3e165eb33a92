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

	edges [2]*Loader[storage.Pair, storage.Edge]
	pages [2]*Loader[storage.PageQuery, []storage.Edge]
}

// New makes the loaders of one request, whose context it is.
func New(ctx context.Context, store storage.Reader) *Loaders {
	l := &Loaders{
		Users:   newLoader(ctx, store.Users),
		Handles: newLoader(ctx, store.UserIDs),
		Counts:  newLoader(ctx, store.Counts),
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		l.edges[side] = newLoader(ctx, func(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Edge] {
			return store.Edges(ctx, side, pairs)
		})
		l.pages[side] = newLoader(ctx, func(ctx context.Context, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
			return store.Pages(ctx, side, queries)
		})
	}
	return l
}

// Edges reads single edges from one side: Forward for `from → to` on the shard of
// from, Inverse for `to ← from` on the shard of to.
func (l *Loaders) Edges(side storage.Side) *Loader[storage.Pair, storage.Edge] { return l.edges[side] }

// Pages reads stretches of followings (Forward) or of followers (Inverse).
func (l *Loaders) Pages(side storage.Side) *Loader[storage.PageQuery, []storage.Edge] {
	return l.pages[side]
}

type contextKey struct{}

// Attach gives a request its loaders.
func Attach(ctx context.Context, store storage.Reader) context.Context {
	return context.WithValue(ctx, contextKey{}, New(ctx, store))
}

// For returns the loaders of the request. A context without them is a mistake in
// the program's wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}
