// Package loaders batches what the resolvers of one request read from the store, and remembers it
// during the request. Keys that are known together are read together, at once, as
// one [storage.Bundle], and so is each step of answers of many steps (send.go). Relations are
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

	ctx   context.Context    // of the request
	reads *storage.ReadStats // of the request; nil: they are not counted
	store storage.Bundler
	made  atomic.Pointer[Relations] // of the request; nil: memory has answered everything

	mu     sync.Mutex
	beside []task // batches that the next one of the relations takes along
	kept   []any  // all loaders, once they are needed, and values of packages: a few
	room   [8]any // for them
}

// init makes the loaders of one request. ctx is the request's context.
func (l *Loaders) init(ctx context.Context, store storage.Bundler) {
	l.ctx, l.store, l.reads = ctx, store, storage.ReadsOf(ctx)
	l.Users.all, l.Users.kind = l, storage.UserLookups
	l.Handles.all, l.Handles.kind = l, storage.HandleLookups
	l.Counts.all, l.Counts.kind = l, storage.CountLookups
	l.kept = append(l.room[:0], &l.Counts, &l.Users, &l.Handles)
}

// Of is the loader of a kind, made when it is first needed.
func Of[K comparable, V any](l *Loaders, kind *storage.LookupKind[K, V]) *Loader[K, V] {
	return once(l, func(made *Loader[K, V]) bool { return made.kind == kind },
		func() *Loader[K, V] { return &Loader[K, V]{all: l, kind: kind} })
}

// Kept is a package's own value for the duration of a request. It is found by its type: there is
// one value of a type, zero at first.
func Kept[T any](l *Loaders) *T {
	return once(l, func(*T) bool { return true }, func() *T { return new(T) })
}

// once is the first kept value that fits, or a new one.
func once[T any](l *Loaders, fits func(*T) bool, make func() *T) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.kept {
		if value, ok := one.(*T); ok && fits(value) {
			return value
		}
	}
	value := make()
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

// Continue is the context of another request, one at a time, with these loaders: it finds what they keep, and they
// read under its context.
func (l *Loaders) Continue(ctx context.Context) context.Context {
	l.ctx, l.reads = ctx, storage.ReadsOf(ctx)
	return context.WithValue(ctx, contextKey{}, l)
}

// For returns the loaders of the request. A context without loaders is a mistake in the program's
// wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}
