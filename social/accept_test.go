package social_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

// Requests that are accepted together have an outcome each, and what follows on the other side is written for all at once. A user
// who becomes a friend needs room, too, for each whom it does not follow.
func TestRequestsAreAcceptedTogether(t *testing.T) {
	const user, asker, others = 1, 2, 40
	for _, side := range []storage.Side{storage.Requests, storage.Forward} {
		store := double.Of(oracle.New())
		var calls atomic.Int64 // that write to other sides
		store.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
			calls.Add(1)
			return store.Store.Apply(ctx, side, edges, rule)
		}
		users := make([]storage.User, others+1)
		for i := range users {
			id := storage.UserID(i + user)
			users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "N", CreatedAt: 1, UpdatedAt: 1, Locked: id == user && side == storage.Forward}
		}
		must.All(t, store.CreateUsers(t.Context(), users))
		relations := social.NewRelations(social.Relations{Store: store, Redundancy: &post{store: store, seen: map[storage.Row]bool{}}})
		var all []storage.UserID
		for id := storage.UserID(asker); id < asker+others; id++ {
			var err error
			if side == storage.Requests {
				_, err = relations.Ask(t.Context(), store, id, user, "")
			} else {
				_, _, err = relations.Follow(t.Context(), store, id, []storage.UserID{user})
			}
			must.OK(t, err)
			all = append(all, id)
		}
		known := all[others-1] // the user follows it already
		_, _, err := relations.Follow(t.Context(), store, user, []storage.UserID{known})
		must.OK(t, err)
		const room = 30
		relations.Rules = social.NewRules(social.Rules{MaxFollowing: room + 1})
		calls.Store(0)
		for i, o := range relations.Accept(t.Context(), side, user, append(all, user)...) {
			var want error
			switch {
			case i == others:
				want = social.ErrSelf
			case side == storage.Requests && i >= room && all[i] != known:
				want = storage.ErrLimitReached
			}
			ok := errors.Is(o.Err, want)
			if want == nil {
				ok = o.Err == nil && o.Value.Changed && len(o.Value.Written) > 0 && o.Value.Written[0].Row == o.Value.Row
			}
			check.That(t, ok, "%s, request %d: %+v, not %v", side, i, o, want)
		}
		n := calls.Load()
		check.That(t, n != 0 && n <= 4, "%s: the other side was written to %d times", side, n)
	}
}
