package accounts_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
)

// gateway is what one gateway of a deployment knows and does about accounts.
type gateway struct {
	hiddenUsers *accounts.HiddenUsers
	states      *accounts.States
	relations   *social.Relations
	sweeper     *accounts.Sweeper
	hub         *events.Hub
}

// rulesOnly is a redundancy mode in which only the rules write to other shards.
type rulesOnly struct{}

func (rulesOnly) Inline() bool                                       { return true }
func (rulesOnly) Propagate(context.Context, []storage.Written) error { return nil }

func open(t *testing.T, store storage.Store, now func() time.Time) *gateway {
	t.Helper()
	g := &gateway{hub: events.NewHub(nil)}
	g.hiddenUsers = accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), now)
	watched := watch.Watch(store, func(_ context.Context, c storage.Change) { g.hub.Publish(events.Of(c)...) })
	g.relations = social.NewRelations(social.Relations{Store: store, Redundancy: rulesOnly{}, HiddenUsers: g.hiddenUsers, Now: now})
	g.states = &accounts.States{Store: watched, Relations: g.relations, HiddenUsers: g.hiddenUsers, Now: now}
	g.sweeper = &accounts.Sweeper{States: g.states, Leaser: store, Shards: store.Shards, Logger: slog.New(slog.DiscardHandler)}
	return g
}

// during runs a function until the test ends.
func during(t *testing.T, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

func makeUsers(t *testing.T, store storage.Store, n int) {
	t.Helper()
	for id := storage.UserID(1); id <= storage.UserID(n); id++ {
		user := storage.User{ID: id, Handle: "u" + id.String(), Name: "N", CreatedAt: 1, UpdatedAt: 1}
		must.OK(t, store.CreateUsers(t.Context(), []storage.User{user})[0].Err)
	}
}

// A gateway knows its own changes at once, and the changes of others when an event comes, or otherwise
// when it reads again.
func TestHiddenUsersAreKnown(t *testing.T) {
	store := oracle.New()
	makeUsers(t, store, 9)
	var later atomic.Int64
	one, other := open(t, store, time.Now), open(t, store, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	set := func(g *gateway, state storage.UserState, user storage.UserID) {
		t.Helper()
		changed, err := g.states.SetOwn(t.Context(), user, state)
		must.That(t, err == nil && changed, "%v %v", changed, err)
	}
	is := func(g *gateway, want ...storage.UserID) {
		t.Helper()
		check.Equal(t, "hidden", g.hiddenUsers.IDs(), want)
		for id := storage.UserID(1); id <= 9; id++ {
			check.That(t, g.hiddenUsers.Has(id) == slices.Contains(want, id), "Has(%s) is %t", id, g.hiddenUsers.Has(id))
		}
	}
	refresh := func(g *gateway) {
		t.Helper()
		must.OK(t, g.hiddenUsers.Refresh(t.Context()))
	}
	set(one, storage.Deactivated, 7)
	set(one, storage.Deactivated, 3)
	is(one, 3, 7)
	is(other)
	refresh(other)
	is(other, 3, 7)
	set(other, storage.Active, 7)
	is(other, 3)
	is(one, 3, 7)
	err := one.states.MayAct(t.Context(), 7)
	check.That(t, err == nil, "%v", err) // the store decides
	is(one, 3)
	wantCode(t, "to act while hidden", one.states.MayAct(t.Context(), 3), apierr.CodeForbidden)

	// A shard whose clock is behind writes a change with an earlier time later.
	_, err = store.SetState(t.Context(), 5, storage.Deactivated, storage.MicrosOf(time.Now().Add(-30*time.Second)))
	must.OK(t, err)
	refresh(one)
	is(one, 3, 5)

	during(t, func(ctx context.Context) { other.hiddenUsers.Run(ctx, one.hub) })
	set(one, storage.Deactivated, 9)
	must.Soon(t, "the other gateway knows", func() bool { return other.hiddenUsers.Has(9) })
	complete, err := one.states.Delete(t.Context(), 9)
	must.That(t, err == nil && complete, "%v %v", complete, err)
	refresh(other)
	is(other, 3, 5, 9) // lists may still have the user
	later.Store(int64(2 * time.Hour))
	must.Soon(t, "it knows that nothing is left", func() bool { return !slices.Contains(other.hiddenUsers.IDs(), 9) })
	check.That(t, other.hiddenUsers.Has(9), "somebody deleted can be dealt with")
	check.Is(t, "somebody deleted acts", one.states.MayAct(t.Context(), 9), storage.ErrUserUnknown)
}

// One change with a time ahead, of a user or by the reader's own clock, does not hide what others write by the right time.
func TestAClockAheadHidesNothing(t *testing.T) {
	store := oracle.New()
	makeUsers(t, store, 9)
	now := time.Now()
	g := open(t, store, func() time.Time { return now })
	wants := func(hidden ...storage.UserID) {
		t.Helper()
		must.OK(t, g.hiddenUsers.Refresh(t.Context()))
		check.Equal(t, "hidden", g.hiddenUsers.IDs(), hidden)
	}
	write := func(user storage.UserID, state storage.UserState, ahead time.Duration) {
		t.Helper()
		_, err := store.SetState(t.Context(), user, state, storage.MicrosOf(now.Add(ahead)))
		must.OK(t, err)
	}
	write(1, storage.Deactivated, time.Hour)
	wants(1)
	write(2, storage.Deactivated, time.Second)
	change := storage.PasswordChange{New: "hash", At: storage.MicrosOf(now.Add(2 * time.Second)), EndsTokens: true}
	_, err := store.SetPassword(t.Context(), 4, change)
	must.OK(t, err)
	wants(1, 2)
	check.Equal(t, "the password changed at", g.hiddenUsers.Passwords.ChangedAt(4), change.At)
	now = now.Add(2 * time.Hour)
	wants(1, 2)
	now = now.Add(-2 * time.Hour)
	write(3, storage.Deactivated, time.Second)
	wants(1, 2, 3)

	// The deletion of a user whose last change is of the future is finished in time.
	write(1, storage.Deleting, 0)
	wants(1, 2, 3)
	now = now.Add(time.Minute)
	during(t, g.sweeper.Run)
	must.Soon(t, "the deletion ends", func() bool { return !storage.UserLookups.Read(t.Context(), store, 1)[0].Found })
}

// What a gateway whose clock is ahead by minutes has read of itself does not hide from it what others write.
func TestAGatewayAheadSeesWhomOthersHide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := oracle.New()
		makeUsers(t, store, 9)
		g := open(t, store, func() time.Time { return time.Now().Add(5 * time.Minute) })
		during(t, func(ctx context.Context) { g.hiddenUsers.Run(ctx, g.hub) })
		for _, ahead := range []time.Duration{5 * time.Minute, 0} {
			time.Sleep(10 * time.Second)
			user := storage.UserID(1 + ahead/time.Minute)
			_, err := store.SetState(t.Context(), user, storage.Deactivated, storage.MicrosOf(time.Now().Add(ahead)))
			must.OK(t, err)
			if time.Sleep(5 * time.Second); !g.hiddenUsers.Has(user) {
				t.Errorf("user %d is not hidden after 5 s", user)
			}
		}
	})
}

// failing is a store that returns an error when it is asked who is hidden.
func failing() (store *double.Store, with *error) {
	store, with = double.Of(oracle.New()), new(error)
	double.Before(store, func(context.Context, []storage.ShardQuery[storage.StateChange]) error { return *with }, storage.StateChangeLookups)
	return store, with
}

func TestNotKnowingWhoIsHiddenIsSaid(t *testing.T) {
	store, with := failing()
	now := time.Now()
	g := open(t, store, func() time.Time { return now })
	check.That(t, g.hiddenUsers.Ready(t.Context()) != nil, "nothing has been read, and it is ready")
	if err := g.hiddenUsers.Refresh(t.Context()); err != nil || g.hiddenUsers.Ready(t.Context()) != nil {
		t.Error(err, g.hiddenUsers.Ready(t.Context()))
	}
	*with = storage.ErrUnavailable
	now = now.Add(3 * time.Second)
	if err := g.hiddenUsers.Refresh(t.Context()); !errors.Is(err, storage.ErrUnavailable) || g.hiddenUsers.Ready(t.Context()) != nil {
		t.Error("a short failure:", err, g.hiddenUsers.Ready(t.Context()))
	}
	now = now.Add(time.Minute)
	_ = g.hiddenUsers.Refresh(t.Context())
	check.Is(t, "after a minute", g.hiddenUsers.Ready(t.Context()), storage.ErrUnavailable)
}

// A suspension ends by the clock of each gateway, even if no store answers, and leaves the user as it was before.
func TestSuspensionsEndByTheClock(t *testing.T) {
	store, with := failing()
	makeUsers(t, store, 4)
	now := time.Now()
	clock := func() time.Time { return now }
	one, other := open(t, store, clock), open(t, store, clock)
	is := func(want ...storage.UserID) {
		t.Helper()
		for _, g := range []*gateway{one, other} {
			_ = g.hiddenUsers.Refresh(t.Context())
			check.Equal(t, "hidden", g.hiddenUsers.IDs(), want)
		}
	}
	moderate := func(user storage.UserID, action storage.ModerationAction, length time.Duration) {
		t.Helper()
		e := storage.ModerationEntry{Owner: user, User: user, Action: action, By: "op", Reason: "spam"}
		if e.Until = storage.Forever; action == storage.Reinstated {
			e.Until = 0
		} else if length > 0 {
			e.Until = storage.MicrosOf(now.Add(length))
		}
		_, changed, err := one.states.Moderate(t.Context(), e)
		must.That(t, err == nil && changed, "%v %v", changed, err)
	}
	for _, user := range []storage.UserID{2, 4} {
		_, err := one.states.SetOwn(t.Context(), user, storage.Deactivated)
		must.OK(t, err)
	}
	moderate(1, storage.Suspended, time.Hour)
	moderate(2, storage.Suspended, time.Hour)
	moderate(3, storage.Suspended, 0)
	check.That(t, one.hiddenUsers.Has(1) && !other.hiddenUsers.Has(1), "the gateway that suspends knows it at once, the other one by the next read")
	is(1, 2, 3, 4)
	for user, until := range map[storage.UserID]any{1: now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"), 3: nil} {
		for _, may := range []func(context.Context, storage.UserID) error{
			one.states.MayAct, other.states.MayAct, func(ctx context.Context, id storage.UserID) error {
				_, err := other.states.SetOwn(ctx, id, storage.Active)
				return err
			},
		} {
			err, known := apierr.Of(may(t.Context(), user))
			check.That(t, known && err.Reason == apierr.Suspended && err.Details["until"] == until, "user %d: %+v, want until %v", user, err, until)
		}
	}
	is(1, 2, 3, 4)
	*with = storage.ErrUnavailable
	now = now.Add(time.Hour - time.Microsecond)
	is(1, 2, 3, 4)
	now = now.Add(time.Microsecond)
	is(2, 3, 4)
	*with = nil
	is(2, 3, 4)
	moderate(3, storage.Reinstated, 0)
	moderate(1, storage.Suspended, time.Hour)
	is(1, 2, 4)
	moderate(1, storage.Suspended, time.Minute) // sooner than before
	now = now.Add(time.Minute)
	is(2, 4)
	moderate(4, storage.Suspended, time.Hour)
	complete, err := one.states.Delete(t.Context(), 4)
	must.That(t, err == nil && complete, "%v %v", complete, err)
	now = now.Add(2 * time.Hour) // lists cannot have the user any more
	is(2)
}

// stuck ends nothing, and waits until its context ends.
type stuck struct{ asked chan struct{} }

func (s stuck) EndAll(ctx context.Context, user storage.UserID) error {
	close(s.asked)
	return silent{}.EndAll(ctx, user)
}

// A client does not wait for a long deletion, and if the client leaves, the deletion continues.
func TestDeletionGoesOnWithoutTheClient(t *testing.T) {
	store := oracle.New()
	makeUsers(t, store, 1)
	g := open(t, store, time.Now)
	work := stuck{make(chan struct{})}
	g.states.Relations = work
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-work.asked; leave() }()
	began := time.Now()
	complete, err := g.states.Delete(ctx, 1)
	check.That(t, err == nil && !complete && time.Since(began) >= time.Second, "complete %t after %s: %v", complete, time.Since(began), err)
	check.That(t, g.hiddenUsers.Has(1), "the user is not hidden meanwhile")
	_, err = g.states.SetOwn(t.Context(), 1, storage.Active)
	wantCode(t, "to come back from a deletion", err, apierr.CodeForbidden)
	wantCode(t, "to act meanwhile", g.states.MayAct(t.Context(), 1), apierr.CodeForbidden)
}

// A user who has deactivated the account returns by signing in. For a sign-in, an account that is being
// deleted does not exist.
func TestWhoIsHiddenSignsIn(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	made, err := a.Register(t.Context(), "maya", "Maya", "correct horse")
	must.OK(t, err)
	login := func() error {
		_, err := a.Login(t.Context(), "maya", "correct horse")
		return err
	}
	for _, step := range []struct {
		state storage.UserState
		may   bool
	}{{storage.Deactivated, true}, {storage.Active, true}, {storage.Deleting, false}} {
		_, err := store.SetState(t.Context(), made.User, step.state, storage.MicrosOf(time.Now()))
		must.OK(t, err)
		if err := login(); (err == nil) != step.may {
			t.Errorf("in state %d: %v", step.state, err)
		} else if err != nil {
			wantCode(t, "login", err, apierr.CodeUnauthenticated)
			_, wrong := a.Login(t.Context(), "maya", "wrong horse")
			check.That(t, wrong != nil && err.Error() == wrong.Error(), "answered %q, a wrong password %q", err, wrong)
		}
	}
}

// grown is a store whose number of shards grows. Its users are on the first shard.
type grown struct {
	storage.Store
	shards int
	asked  []storage.StateChange // those that the second shard was asked for
}

func (s *grown) Shards() int { return s.shards }

func (s *grown) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.StateChangeLookups.Instead(ctx, b, storage.OneByOne(s.changes))
	s.Store.Bundle(ctx, b)
}

func (s *grown) changes(ctx context.Context, q storage.ShardQuery[storage.StateChange]) ([]storage.StateChange, error) {
	if q.Shard == 0 {
		return storage.StateChangeLookups.Get(ctx, s.Store, q)
	}
	s.asked = append(s.asked, q.After)
	return []storage.StateChange{{At: 1e15, User: 9, State: storage.Deactivated}}, nil // fewer than the limit, so there are no more
}

// A shard that has been added is read from the beginning, and then on from there.
func TestHiddenUsersOfMoreShards(t *testing.T) {
	store := &grown{Store: oracle.New(), shards: 1}
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	for _, shards := range []int{1, 2, 2} {
		store.shards = shards
		err := hidden.Refresh(t.Context())
		check.That(t, err == nil, "%d shards: %v", shards, err)
	}
	n := len(store.asked)
	check.That(t, n == 2 && store.asked[0].At == 0 && store.asked[1].At != 0 && hidden.Has(9), "the second shard was asked from %v", store.asked)
}

// After a restore, those are hidden whom the backup has hidden, however long ago, and tokens end by the changes of passwords that it has.
func TestWhoIsHiddenAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := oracle.New()
		hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
		is := func(want ...storage.UserID) {
			t.Helper()
			time.Sleep(5 * time.Second)
			if err := errors.Join(hidden.Refresh(t.Context()), hidden.Refresh(t.Context())); err != nil || !slices.Equal(hidden.IDs(), want) {
				t.Errorf("%v, want %v: %v", hidden.IDs(), want, err)
			}
		}
		set := func(user storage.UserID, state storage.UserState) {
			t.Helper()
			_, err := store.SetState(t.Context(), user, state, storage.MicrosOf(time.Now()))
			must.OK(t, err)
		}
		store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "one"}, {ID: 2, Handle: "two"}, {ID: 3, Handle: "three"}})
		set(2, storage.Deactivated)
		set(3, storage.Deactivated)
		signOut := func() storage.Micros {
			t.Helper()
			now, err := store.SetPassword(t.Context(), 1, storage.PasswordChange{At: storage.MicrosOf(time.Now()), EndsTokens: true})
			must.OK(t, err)
			return now.ChangedAt
		}
		changed := func(want storage.Micros) {
			t.Helper()
			check.Equal(t, "the password was changed at", hidden.Passwords.ChangedAt(1), want)
		}
		saved := signOut()
		restore := store.Backup(0)
		time.Sleep(time.Hour)
		set(1, storage.Deactivated)
		set(2, storage.Active)
		lost := signOut()
		is(1, 3)
		changed(lost)
		restore()
		store.Readmit(0)
		is(2, 3)
		changed(saved)
		lost = signOut()
		is(2, 3)
		changed(lost)
	})
}
