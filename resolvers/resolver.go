// Package resolvers answers the fields of the schema. A resolver translates: it
// checks arguments, makes one call, and converts.
//
// No field waits for a loader's timer. The root field that runs first looks at the
// whole query and fetches, level by level, every key that a level needs in one
// batch for each look-up (fetch.go, needs.go); the resolvers below find what they
// ask for in the loaders already.
package resolvers

import (
	"context"
	"time"

	"kith/accounts"
	"kith/events"
	"kith/loaders"
	"kith/reconcile"
	"kith/social"
	"kith/storage"
)

// Resolver is the root of all resolvers.
type Resolver struct {
	// Budget bounds each set answer. Zero means [social.DefaultBudget].
	Budget social.Budget

	// Ties changes who follows whom.
	Ties *social.Ties
	// Accounts signs users up and in.
	Accounts *accounts.Accounts

	// Store is read by what outlives a request's loaders: payloads that wait for a
	// write to arrive on the inverse side, at most so long, and subscriptions.
	Store           storage.Reader
	ConsistencyWait time.Duration

	// Hub tells subscriptions what has changed.
	Hub *events.Hub

	// Statuses tell what reconciling has found.
	Statuses reconcile.StatusReader
}

// setAnswer prepares an answer that needs several look-ups. When others like it
// are computed in the same request, each step is made together with theirs, until
// leave is called.
func (r *Resolver) setAnswer(ctx context.Context) (_ context.Context, graph *social.Graph, leave func()) {
	l := loaders.For(ctx)
	ctx, leave = l.Crowd.Join(ctx)
	return ctx, social.New(l.Reader(), r.Budget), leave
}
