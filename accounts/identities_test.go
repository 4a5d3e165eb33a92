package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// linked counts look-ups of identities, and may fail in the middle of a registration.
type linked struct {
	*oracle.Store
	lookUps    atomic.Int64
	noRegister bool
}

func (l *linked) Bundle(ctx context.Context, b *storage.Bundle) {
	if storage.IdentityLookups.In(b) != nil {
		l.lookUps.Add(1)
	}
	l.Store.Bundle(ctx, b)
}

var errKilled = errors.New("killed")

func (l *linked) Register(ctx context.Context, user storage.User, hash string) error {
	if l.noRegister {
		return errKilled
	}
	return l.Store.Register(ctx, user, hash)
}

// identified is a service whose users come from a provider. Its clock can be set.
func identified(t *testing.T) (a *accounts.Accounts, store *linked, clock *atomic.Int64) {
	t.Helper()
	a, _, kept := service(t, identity.LimitsConfig{})
	store, clock = &linked{Store: kept}, new(atomic.Int64)
	clock.Store(time.Now().UnixMicro())
	a.Store, a.Tokens, a.Now = store, nil, func() time.Time { return time.UnixMicro(clock.Load()) }
	a.Identities = accounts.NewIdentities(store, a.Now)
	return a, store, clock
}

// from is the context of a user whom a provider has signed in.
func from(t *testing.T, subject string) context.Context {
	return identity.With(t.Context(), identity.Viewer{Identity: storage.Identity{Issuer: "https://id.example.org", Subject: subject}})
}

func (l *linked) owner(t *testing.T, subject string) storage.UserID {
	t.Helper()
	return storage.IdentityLookups.Read(t.Context(), l.Store, storage.Identity{Issuer: "https://id.example.org", Subject: subject})[0].Value
}

// TestAnIdentityIsLinkedMeanwhile to a user by an operator, who unlinks it at once: whoever registers with it gets an id all the same.
func TestAnIdentityIsLinkedMeanwhile(t *testing.T) {
	t.Parallel()
	a, engine, _ := identified(t)
	store, tries := double.Of(engine.Store), 0
	store.Instead.LinkIdentity = func(ctx context.Context, who storage.Identity, user storage.UserID, at storage.Micros) error {
		if tries++; tries == 1 {
			return storage.ErrKeyTaken
		}
		return engine.LinkIdentity(ctx, who, user, at)
	}
	a.Store, a.Identities = store, accounts.NewIdentities(store, a.Now)
	made, err := a.Register(from(t, "auth0|1"), "maya", "Maya", "")
	must.That(t, err == nil && made.User != 0 && engine.owner(t, "auth0|1") == made.User, "%+v, %v", made, err)
}

func TestRegisterWithAProvidersToken(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	_, err := a.Register(from(t, "auth0|1"), "maya", "Maya", "correct horse")
	wantCode(t, "with a password", err, apierr.CodeBadInput)
	_, err = a.Register(t.Context(), "maya", "Maya", "")
	wantCode(t, "without a token", err, apierr.CodeForbidden)

	made, err := a.Register(from(t, "auth0|1"), "Maya", "Maya", "")
	must.That(t, err == nil && made.User != 0 && store.owner(t, "auth0|1") == made.User, "%+v, %v", made, err)
	again, err := a.Register(from(t, "auth0|1"), "maya", "Maya", "")
	check.That(t, err == nil && again.User == made.User, "again: %+v, %v", again, err)
	_, err = a.Register(from(t, "auth0|1"), "other", "Maya", "")
	wantCode(t, "with another handle", err, apierr.CodeBadInput)
	_, err = a.Register(from(t, "auth0|2"), "maya", "Maya", "")
	wantCode(t, "a handle that is taken", err, apierr.CodeBadInput)
	check.That(t, store.owner(t, "auth0|2") == 0, "a handle that is taken leaves a link")

	_, err = store.SetState(t.Context(), made.User, storage.Deleting, 1)
	must.OK(t, err)
	_, err = a.Register(from(t, "auth0|1"), "maya", "Maya", "")
	wantCode(t, "while the user is being deleted", err, apierr.CodeForbidden)
	must.OK(t, store.Erase(t.Context(), made.User, 2))
	anew, err := a.Register(from(t, "auth0|1"), "maya", "Maya", "")
	check.That(t, err == nil && anew.User != made.User && anew.User != 0, "after that: %+v, %v", anew, err)
}

// If a program is killed between the two writes of a registration, it leaves an id, which the next attempt uses.
func TestRegisteringIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	a, store, clock := identified(t)
	other := accounts.NewIdentities(store, a.Now) // of another gateway
	standsFor := func(want storage.UserID) {
		t.Helper()
		for _, gateway := range []*accounts.Identities{a.Identities, other} {
			user, err := gateway.UserOf(t.Context(), storage.Identity{Issuer: "https://id.example.org", Subject: "x"})
			check.That(t, err == nil && user == want, "it stands for %d, %v, want %d", user, err, want)
		}
	}
	store.noRegister = true
	_, err := a.Register(from(t, "x"), "maya", "Maya", "")
	must.That(t, errors.Is(err, errKilled), "%v", err)
	id := store.owner(t, "x")
	standsFor(0) // so that its owner is asked to register
	store.noRegister = false
	made, err := a.Register(from(t, "x"), "maya_2", "Maya", "")
	check.That(t, err == nil && id != 0 && made.User == id, "user %d, %v, after the link to %d", made.User, err, id)
	clock.Add(time.Second.Microseconds())
	standsFor(id)
}

func TestIdentitiesAreRemembered(t *testing.T) {
	t.Parallel()
	a, store, clock := identified(t)
	ask := func(subject string, want storage.UserID, lookUps int64) {
		t.Helper()
		before := store.lookUps.Load()
		user, err := a.Identities.UserOf(t.Context(), storage.Identity{Issuer: "https://id.example.org", Subject: subject})
		if err != nil || user != want || store.lookUps.Load()-before != lookUps {
			t.Errorf("%s: user %d, %v, %d look-ups; want %d by %d", subject, user, err, store.lookUps.Load()-before, want, lookUps)
		}
	}
	ask("x", 0, 1)
	ask("x", 0, 0)
	made, err := a.Register(from(t, "x"), "maya", "Maya", "")
	must.OK(t, err)
	ask("x", made.User, 0) // at once, although it was remembered as absent
	clock.Add((time.Minute + time.Second).Microseconds())
	ask("x", made.User, 1)
	ask("x", made.User, 0)

	// Another gateway has linked it.
	ask("y", 0, 1)
	must.OK(t, store.LinkIdentity(t.Context(), storage.Identity{Issuer: "https://id.example.org", Subject: "y"}, made.User, 1))
	clock.Add(time.Second.Microseconds())
	ask("y", made.User, 1)
}

func TestLinkIdentity(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	for _, id := range []storage.UserID{7, 8} {
		_, _, err := a.Create(t.Context(), id, id.ImportedHandle(), "Maya")
		must.OK(t, err)
	}
	who := storage.Identity{Issuer: "https://id.example.org", Subject: "112233445566778899001"}
	for _, isNew := range []bool{true, false} {
		changed, err := a.LinkIdentity(t.Context(), 7, who)
		must.That(t, err == nil && changed == isNew, "changed %t, want %t; %v", changed, isNew, err)
	}
	_, err := a.LinkIdentity(t.Context(), 8, who)
	wantCode(t, "to another", err, apierr.CodeBadInput)
	err = accounts.CheckIdentity(storage.Identity{Issuer: "x"})
	wantCode(t, "nothing", err, apierr.CodeBadInput)
	_, err = a.LinkIdentity(t.Context(), 9, who)
	check.Is(t, "to nobody", err, storage.ErrUserUnknown)
	_, err = store.SetState(t.Context(), 8, storage.Deleting, 1)
	must.OK(t, err)
	_, err = a.LinkIdentity(t.Context(), 8, storage.Identity{Issuer: "x", Subject: "y"})
	check.Is(t, "to somebody who is being deleted", err, storage.ErrUserUnknown)
}

func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	a, id, store := service(t, identity.LimitsConfig{})
	times := accounts.NewHiddenUsers(store, nil, time.Now).Passwords
	a.Changed = times.Note
	id.Verifier.UseRevocations(times, nil)
	made, err := a.Register(t.Context(), "maya", "Maya", "correct horse")
	must.OK(t, err)
	_, err = id.Verifier.Verify(t.Context(), made.Token)
	must.OK(t, err)
	must.OK(t, a.SignOutEverywhere(t.Context(), made.User))
	_, err = id.Verifier.Verify(t.Context(), made.Token)
	wantCode(t, "a token of before", err, apierr.CodeUnauthenticated)
	next, err := a.Login(t.Context(), "maya", "correct horse")
	must.OK(t, err)
	_, err = id.Verifier.Verify(t.Context(), next.Token)
	check.Is(t, "a token of after", err, nil)
	check.Is(t, "nobody", a.SignOutEverywhere(t.Context(), 99), storage.ErrUserUnknown)
}

// A user with another way to sign in may unlink an identity; a backend may unlink any.
func TestUnlinkIdentity(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	ctx := t.Context()
	who := func(subject string) storage.Identity {
		return storage.Identity{Issuer: "https://id.example.org", Subject: subject}
	}
	made, err := a.Register(from(t, "a"), "maya", "Maya", "")
	must.OK(t, err)
	own := func(subject string, want bool) {
		t.Helper()
		was, err := a.UnlinkOwnIdentity(ctx, made.User, who(subject))
		check.That(t, err == nil && was == want, "%s: %v, %v; want %v", subject, was, err, want)
	}
	own("b", false)
	_, err = a.UnlinkOwnIdentity(ctx, made.User, who("a"))
	wantCode(t, "the only one", err, apierr.CodeForbidden)
	_, err = a.LinkIdentity(ctx, made.User, who("b"))
	must.OK(t, err)
	own("a", true)
	own("a", false)
	user, err := a.Identities.UserOf(ctx, who("a"))
	check.That(t, err == nil && user == 0, "it is of %d, %v", user, err) // not remembered either
	_, _, err = a.Create(ctx, 7, storage.UserID(7).ImportedHandle(), "Zoe")
	must.OK(t, err)
	_, err = a.LinkIdentity(ctx, 7, who("z"))
	must.OK(t, err)
	own("z", false)
	check.That(t, store.owner(t, "z") == 7, "another user's has been unlinked")
	for _, want := range []bool{true, false} {
		was, err := a.UnlinkIdentity(ctx, who("z"))
		check.That(t, err == nil && was == want, "by a backend: %v, %v; want %v", was, err, want)
	}
	was, err := a.UnlinkIdentity(ctx, who("b"))
	check.That(t, err == nil && was, "the only one, by a backend: %v, %v", was, err)
}

// What a look-up has found is not remembered if the identity has been unlinked, or linked, meanwhile.
func TestALookUpThatIsOvertakenIsForgotten(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	slow, meanwhile := double.Of(store.Store), func() {}
	double.After(slow, func(storage.Side, []storage.Identity, []storage.Result[storage.UserID]) {
		now := meanwhile
		meanwhile = func() {}
		now()
	}, storage.IdentityLookups)
	a.Store, a.Identities = slow, accounts.NewIdentities(slow, a.Now)
	for _, id := range []storage.UserID{7, 8} {
		_, _, err := a.Create(t.Context(), id, id.ImportedHandle(), "Maya")
		must.OK(t, err)
	}
	who := storage.Identity{Issuer: "https://id.example.org", Subject: "a"}
	link := func(id storage.UserID) {
		_, err := a.LinkIdentity(t.Context(), id, who)
		check.That(t, err == nil, "%v", err)
	}
	unlink := func() {
		was, err := a.UnlinkIdentity(t.Context(), who)
		check.That(t, err == nil && was, "%t, %v", was, err)
	}
	for name, of := range map[string]struct {
		meanwhile func()
		want      storage.UserID
	}{"unlinked": {unlink, 0}, "linked to another": {func() { unlink(); link(8) }, 8}} {
		meanwhile = func() {}
		link(7)
		a.Identities = accounts.NewIdentities(slow, a.Now)
		meanwhile = of.meanwhile
		_, _ = a.Identities.UserOf(t.Context(), who)
		user, err := a.Identities.UserOf(t.Context(), who)
		check.That(t, err == nil && user == of.want, "%s: it stands for user %d, %v", name, user, err)
		meanwhile = func() {}
		if of.want != 0 {
			unlink()
		}
	}
}

// The lease under which an identity is unlinked lasts longer than the request may take, and longer by what clocks differ.
func TestAnUnlinkingIsAloneAsLongAsItsRequest(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	watched, ends := double.Of(store.Store), storage.Micros(0)
	watched.Instead.Lease = func(ctx context.Context, kind, holder string, slots int, now, until storage.Micros) (int, error) {
		ends = until
		return store.Lease(ctx, kind, holder, slots, now, until)
	}
	a.Identities = accounts.NewIdentities(watched, time.Now)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	before := a.Now()
	_, err := a.UnlinkOwnIdentity(ctx, 7, storage.Identity{Issuer: "https://id.example.org", Subject: "a"})
	must.OK(t, err)
	least := storage.MicrosOf(before.Add(10 * time.Minute))
	check.That(t, ends >= least, "the lease ends %d µs before the request", least-ends)
}

// A password is another way to sign in if Kith signs users in.
func TestAPasswordIsAnotherWay(t *testing.T) {
	t.Parallel()
	a, _, store := service(t, identity.LimitsConfig{})
	a.Identities = accounts.NewIdentities(store, time.Now)
	made, err := a.Register(t.Context(), "maya", "Maya", "correct horse")
	must.OK(t, err)
	who := storage.Identity{Issuer: "https://id.example.org", Subject: "a"}
	_, err = a.LinkIdentity(t.Context(), made.User, who)
	must.OK(t, err)
	tokens := a.Tokens
	a.Tokens = nil
	_, err = a.UnlinkOwnIdentity(t.Context(), made.User, who)
	wantCode(t, "where it does not", err, apierr.CodeForbidden)
	a.Tokens = tokens
	was, err := a.UnlinkOwnIdentity(t.Context(), made.User, who)
	check.That(t, err == nil && was, "%v, %v", was, err)
}

// The identities of all shards count.
func TestAUserHasABoundedNumberOfIdentities(t *testing.T) {
	t.Parallel()
	a, store, _ := identified(t)
	scattered := double.Of(store.Store) // each identity on a shard of its own, on which the user has no other
	scattered.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
		return store.Restore(ctx, storage.Restored{Identities: []storage.LinkedIdentity{{Identity: id, User: user, At: at}}})[0].Err
	}
	a.Identities = accounts.NewIdentities(scattered, time.Now)
	_, _, err := a.Create(t.Context(), 7, storage.UserID(7).ImportedHandle(), "Maya")
	must.OK(t, err)
	link := func(n int) error {
		_, err := a.LinkIdentity(t.Context(), 7, storage.Identity{Issuer: "https://id.example.org", Subject: fmt.Sprint(n)})
		return err
	}
	for n := range storage.MaxIdentities {
		must.OK(t, link(n))
	}
	wantCode(t, "one more", link(storage.MaxIdentities), apierr.CodeLimitReached)
	check.Is(t, "one of them again", link(0), nil)
}
