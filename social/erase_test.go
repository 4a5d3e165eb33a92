package social_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

// lost is a redundancy mode that loses everything it is given.
type lost struct{}

func (lost) Inline() bool                                       { return false }
func (lost) Propagate(context.Context, []storage.Written) error { return nil }

// If the program dies during a deletion, after any number of writes, another program completes the
// deletion, on both sides, with only what the stores contain.
func TestEndAllGoesOnAfterACrashAnywhere(t *testing.T) {
	const victim = storage.UserID(1)
	for writes := 0; ; writes++ {
		store := oracle.New(oracle.Together(func(a, b storage.UserID) bool { return a == b }))
		w := newWorld(t, store, victim, false, func() bool { return false }, 0)
		tie := func(side storage.Side, from, to storage.UserID, kind storage.EdgeType, at storage.Micros) {
			edge := storage.Edge{From: from, To: to, Type: kind, UpdateTime: at}
			for _, s := range []storage.Side{side, side.Replica()} {
				r := store.Apply(t.Context(), s, []storage.Edge{edge}, storage.IfNewer)[0]
				must.That(t, r.Err == nil && r.Value.Changed, "%s %+v: %v", s, edge, r.Err)
			}
		}
		tie(storage.Forward, 1, 2, storage.Following, 10)
		tie(storage.Forward, 2, 1, storage.Following, 11)
		tie(storage.Forward, 3, 1, storage.Blocking, 12)
		tie(storage.Requests, 1, 2, storage.Accepted, 13)
		tie(storage.Requests, 2, 1, storage.Declined, 14)
		tie(storage.Forward, 2, 3, storage.Following, 15)
		for n, pair := range []storage.Pair{{From: 1, To: 2, Item: 7}, {From: 2, To: 1, Item: 8}, {From: 2, To: 1, Item: 9}, {From: 1, To: 1, Item: 9}} {
			for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
				store.Apply(t.Context(), side, []storage.Edge{pair.Edge(storage.Favorited, storage.Micros(16+n))}, storage.IfNewer)
			}
		}
		// A follow whose time is ahead of the clock's.
		ahead := storage.MicrosOf(time.Now().Add(time.Hour))
		tie(storage.Requests, 3, 1, storage.Cancelled, ahead)
		// A follow that is newer on the other side than the tombstone will be.
		newer := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: ahead}
		store.Apply(t.Context(), storage.Inverse, []storage.Edge{newer}, storage.IfNewer)

		done := 0
		dies := func() bool { done++; return done > writes }
		dying := social.NewRelations(social.Relations{Store: torn{store, dies}, Redundancy: lost{}})
		crashed := dying.EndAll(crashing(t.Context(), func() bool { return done > writes }), victim) != nil
		must.OK(t, social.NewRelations(social.Relations{Store: store, Redundancy: lost{}}).EndAll(t.Context(), victim))
		for _, side := range storage.AllSides {
			for _, user := range w.users {
				rows := storage.RowLookups.Read(t.Context(), store, storage.RowsQuery{Side: side, Owner: user, Limit: 10})[0]
				must.OK(t, rows.Err)
				for _, row := range rows.Value {
					check.That(t, row.From != victim && row.To != victim, "after a crash behind %d writes %s of user %s has %+v", writes, side, user, row)
				}
			}
		}
		w.check(t)
		if !crashed {
			must.Least(t, "writes to crash behind", writes, 8)
			return
		}
	}
}

// crashing is a context that has ended once the program is dead.
func crashing(ctx context.Context, dead func() bool) context.Context { return dyingContext{ctx, dead} }

type dyingContext struct {
	context.Context
	dead func() bool
}

func (c dyingContext) Err() error {
	if c.dead() {
		return context.Canceled
	}
	return c.Context.Err()
}
