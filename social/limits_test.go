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

var errDown = errors.New("the shard is down")

// Accepting makes both users follow. So both need room for a following, unless they follow already.
func TestAcceptingNeedsRoomOnBothSides(t *testing.T) {
	type pairs [][2]storage.UserID
	for name, c := range map[string]struct {
		follows pairs // before 2 asks 1
		limit   int64
		counts  error // that they cannot be read
		edges   error
		want    error
	}{
		"room for both":             {follows: pairs{{1, 3}, {2, 3}}, limit: 2},
		"no limit":                  {follows: pairs{{1, 3}, {2, 3}}, counts: errDown},
		"no room":                   {follows: pairs{{1, 3}}, limit: 1, want: storage.ErrLimitReached},
		"no room, but follows":      {follows: pairs{{1, 2}}, limit: 1},
		"no room there":             {follows: pairs{{2, 3}}, limit: 1, want: social.ErrTheirLimit},
		"no room there, but follow": {follows: pairs{{2, 1}}, limit: 1},
		"counts cannot be read":     {follows: pairs{{1, 3}}, limit: 9, counts: errDown, want: errDown},
		"the edge cannot be read":   {follows: pairs{{1, 2}}, limit: 1, edges: errDown, want: errDown},
	} {
		store := oracle.New()
		world := newWorld(t, store, 1, true, func() bool { return false }, 0)
		relations := world.gateways[0]
		for _, pair := range c.follows {
			_, _, err := relations.Follow(t.Context(), store, pair[0], []storage.UserID{pair[1]})
			must.OK(t, err)
		}
		_, err := relations.Ask(t.Context(), store, 2, 1, "")
		must.OK(t, err)
		broken := double.Of(store)
		double.Before(broken, func(context.Context, []storage.UserID) error { return c.counts }, storage.CountLookups)
		double.Before(broken, func(context.Context, []storage.Pair) error { return c.edges }, storage.EdgeLookups...)
		relations.Store, relations.Rules = broken, social.NewRules(social.Rules{MaxFollowing: c.limit})
		one := relations.Accept(t.Context(), storage.Requests, 1, 2)[0]
		outcome, err := one.Value, one.Err
		check.Is(t, name, err, c.want)
		check.Equal(t, name+": whether it changes something", outcome.Changed, c.want == nil)
		check.Equal(t, name+": whether they are friends", storage.CountLookups.Read(t.Context(), store, 1)[0].Value.Friend == 1, c.want == nil)
	}
}

type hiddenUser storage.UserID

func (h hiddenUser) Has(id storage.UserID) bool { return id == storage.UserID(h) }
func (h hiddenUser) IDs() []storage.UserID      { return []storage.UserID{storage.UserID(h)} }

// Nobody can ask itself for friendship, and requests of hidden users do not exist.
func TestRequestsAreOfTwoUsersWhoAreSeen(t *testing.T) {
	store := oracle.New()
	relations := newWorld(t, store, 1, true, func() bool { return false }, 0).gateways[0]
	for _, pair := range [][2]storage.UserID{{1, 3}, {3, 2}} {
		_, err := relations.Ask(t.Context(), store, pair[0], pair[1], "")
		must.OK(t, err)
	}
	relations.HiddenUsers = hiddenUser(3)
	ask := func(ctx context.Context, user, other storage.UserID) (social.Outcome, error) {
		return relations.Ask(ctx, store, user, other, "")
	}
	accept := func(ctx context.Context, user, other storage.UserID) (social.Outcome, error) {
		one := relations.Accept(ctx, storage.Requests, user, other)[0]
		return one.Value, one.Err
	}
	for _, c := range []struct {
		name        string
		act         func(ctx context.Context, user, other storage.UserID) (social.Outcome, error)
		user, other storage.UserID
		want        error
	}{
		{"ask", ask, 1, 1, social.ErrSelf},
		{"ask", ask, 1, 3, storage.ErrUserUnknown},
		{"cancel", relations.Cancel, 1, 1, social.ErrSelf},
		{"cancel", relations.Cancel, 1, 3, storage.ErrNoEdge},
		{"accept", accept, 2, 2, social.ErrSelf},
		{"accept", accept, 2, 3, storage.ErrNoEdge},
		{"decline", relations.Decline, 2, 2, social.ErrSelf},
		{"decline", relations.Decline, 2, 3, storage.ErrNoEdge},
		{"remove", relations.Remove, 2, 2, social.ErrSelf},
		{"remove", relations.Remove, 2, 3, nil},
	} {
		o, err := c.act(t.Context(), c.user, c.other)
		check.That(t, !o.Changed && errors.Is(err, c.want), "%s: user %s with %s: %+v, %v; want %v", c.name, c.user, c.other, o, err, c.want)
	}
}

// A user can mark those whom it follows, and nobody else.
func TestMarksAreOfFollows(t *testing.T) {
	store := oracle.New()
	world := newWorld(t, store, 1, true, func() bool { return false }, 0)
	relations := world.gateways[0]
	_, _, err := relations.Follow(t.Context(), store, 1, []storage.UserID{2, 3})
	must.OK(t, err)
	relations.HiddenUsers = hiddenUser(3)
	special := true
	for _, c := range []struct {
		user, other storage.UserID
		changed     bool
		want        error
	}{
		{1, 2, true, nil},
		{1, 2, false, nil},
		{1, 1, false, social.ErrSelf},
		{1, 3, false, storage.ErrNoEdge},
		{2, 1, false, storage.ErrNoEdge},
	} {
		changed, err := relations.Mark(t.Context(), c.user, c.other, storage.MarkChange{Special: &special})
		check.That(t, changed == c.changed && errors.Is(err, c.want), "mark %s for %s: %t, %v; want %t, %v", c.other, c.user, changed, err, c.changed, c.want)
	}
}

// A user can neither follow nor unfollow herself. The rest of what she asks for is done.
func TestFollowsAreOfTwoUsers(t *testing.T) {
	store := oracle.New()
	relations := newWorld(t, store, 1, true, func() bool { return false }, 0).gateways[0]
	follow := func() ([]storage.Result[storage.Changed], error) {
		ties, _, err := relations.Follow(t.Context(), store, 1, []storage.UserID{1, 2})
		return ties, err
	}
	unfollow := func() ([]storage.Result[storage.Changed], error) {
		ties, _, err := relations.Unfollow(t.Context(), 1, []storage.UserID{1, 2})
		return ties, err
	}
	for i, act := range []func() ([]storage.Result[storage.Changed], error){follow, unfollow} {
		ties, err := act()
		check.That(t, err == nil && errors.Is(ties[0].Err, social.ErrSelf) && ties[1].Err == nil && ties[1].Value.Changed, "%d: %+v, %v", i, ties, err)
	}
}

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
