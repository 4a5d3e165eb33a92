package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/storage"
)

// Identities know for which users the subjects of providers stand. They keep what they have looked up
// in memory, including that a subject stands for nobody, so that requests need no look-up. Identities
// implements [kith/accounts/identity.Identities].
type Identities struct {
	store storage.Store
	now   func() time.Time

	mu      sync.Mutex
	known   *simplelru.LRU[storage.Identity, knownIdentity]
	changes int // how often one has been linked or unlinked here
}

// knownIdentity is the outcome of a look-up.
type knownIdentity struct {
	user   storage.UserID // 0: nobody
	until  time.Time
	change int // the last one that it takes into account
}

const (
	// identityKept is how long it is remembered for whom an identity stands. An identity stops
	// standing for a user when it is unlinked or the user is deleted; then its owner may register
	// again.
	identityKept = time.Minute

	// absenceKept is how long it is remembered that an identity stands for nobody, or for a user who has not been made: for that long,
	// a user who has registered at one gateway may be unknown to the others.
	absenceKept = time.Second

	// clocksDiffer is by how much the clocks of gateways may differ.
	clocksDiffer = time.Minute

	// identitiesMost is how many identities are remembered, some 20 MB.
	identitiesMost = 65_536
)

// NewIdentities makes Identities that look up in a store. now is the clock.
func NewIdentities(store storage.Store, now func() time.Time) *Identities {
	known, err := simplelru.NewLRU[storage.Identity, knownIdentity](identitiesMost, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Identities{store: store, now: now, known: known}
}

// UserOf implements [kith/accounts/identity.Identities]. An identity that was linked for a registration that has failed stands for nobody:
// its owner is told to register, again.
func (i *Identities) UserOf(ctx context.Context, id storage.Identity) (storage.UserID, error) {
	i.mu.Lock()
	known, found := i.known.Get(id)
	i.mu.Unlock()
	if found && i.now().Before(known.until) {
		return known.user, nil
	}
	_, user, err := i.look(ctx, id)
	return user, err
}

// look asks the store to which id an identity is linked, and for which user it stands. If that user's shard does not answer, there is one.
func (i *Identities) look(ctx context.Context, id storage.Identity) (linked, user storage.UserID, err error) {
	began, changes := i.now(), i.changed()
	r := storage.IdentityLookups.Read(ctx, i.store, id)[0]
	if r.Err != nil {
		return 0, 0, fmt.Errorf("look an identity up: %w", r.Err)
	}
	kept := absenceKept
	if r.Found {
		if row := storage.UserLookups.Read(ctx, i.store, r.Value)[0]; row.Found || row.Err != nil {
			user, kept = r.Value, identityKept
		}
	}
	i.keep(id, knownIdentity{user, began.Add(kept), changes})
	return r.Value, user, nil
}

func (i *Identities) changed() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changes
}

// keep remembers an outcome, unless a change has overtaken it.
func (i *Identities) keep(id storage.Identity, outcome knownIdentity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, _ := i.known.Peek(id); known.change <= outcome.change {
		i.known.Add(id, outcome)
	}
}

// change is keep for the outcome of a change. If another one has overtaken it, nothing is known.
func (i *Identities) change(id storage.Identity, outcome knownIdentity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, _ := i.known.Peek(id); known.change > outcome.change {
		outcome = knownIdentity{}
	}
	i.changes++
	outcome.change = i.changes
	i.known.Add(id, outcome)
}

// link makes an identity stand for a user. [storage.ErrKeyTaken].
func (i *Identities) link(ctx context.Context, id storage.Identity, user storage.UserID) error {
	outcome := knownIdentity{change: i.changed()}
	err := i.store.LinkIdentity(ctx, id, user, storage.MicrosOf(i.now()))
	if err == nil {
		outcome.user, outcome.until = user, i.now().Add(identityKept)
	}
	i.change(id, outcome)
	return err
}

// unlink unlinks an identity from a user. Other gateways may remember it for a minute.
func (i *Identities) unlink(ctx context.Context, id storage.Identity, user storage.UserID) (was bool, err error) {
	was, err = i.store.UnlinkIdentity(ctx, id, user)
	i.change(id, knownIdentity{})
	return was, err
}

// registerIdentity makes a user for a caller whom a provider has signed in. The identity is linked
// first, to the id that the user will have: after a crash in between, the next try finds that id and
// makes the user. Trying again with the same handle changes nothing.
func (a *Accounts) registerIdentity(ctx context.Context, caller identity.Viewer, handle, name string) (Session, error) {
	id, err := a.idFor(ctx, caller.Identity, handle)
	if err != nil {
		return Session{}, err
	}
	session := Session{id, caller.Token(), caller.Expires}
	now, outcome := storage.MicrosOf(a.Now()), knownIdentity{change: a.Identities.changed()}
	err = a.Store.Register(ctx, storage.User{ID: id, Handle: handle, Name: name, CreatedAt: now, UpdatedAt: now}, "")
	if err == nil {
		outcome.user, outcome.until = id, a.Now().Add(identityKept)
	}
	a.Identities.change(caller.Identity, outcome)
	switch {
	case errors.Is(err, storage.ErrHandleTaken):
		return Session{}, handleTaken(handle)
	case errors.Is(err, storage.ErrUserExists):
		return session, a.registered(ctx, id, handle)
	case err != nil:
		return Session{}, fmt.Errorf("register %s: %w", handle, err)
	}
	return session, nil
}

// idFor is the id of the user for whom an identity stands, a new one if there is none.
func (a *Accounts) idFor(ctx context.Context, who storage.Identity, handle string) (storage.UserID, error) {
	id, _, err := a.Identities.look(ctx, who)
	if err != nil {
		return 0, err
	}
	if id != 0 {
		err := a.mayReturn(ctx, id)
		if errors.Is(err, errCredentials) {
			err = errLeaving
		}
		return id, err
	}
	// Asked first, so that a caller who asks for a taken handle leaves no link.
	switch owner := storage.HandleLookups.Read(ctx, a.Store, handle)[0]; {
	case owner.Err != nil:
		return 0, fmt.Errorf("find %s: %w", handle, owner.Err)
	case owner.Found:
		if u := storage.UserLookups.Read(ctx, a.Store, owner.Value)[0]; u.Found && u.Value.Handle == handle {
			return 0, handleTaken(handle)
		}
	}
	if id, err = a.IDs.Next(ctx); err != nil {
		return 0, fmt.Errorf("make an id for %s: %w", handle, err)
	}
	err = a.Identities.link(ctx, who, id)
	if errors.Is(err, storage.ErrKeyTaken) { // meanwhile another try has linked it, and it may be unlinked again by now
		return a.idFor(ctx, who, handle)
	}
	if err != nil {
		err = fmt.Errorf("link the identity of %s: %w", handle, err)
	}
	return id, err
}

// registered refuses an identity that already has a user other than the one that is asked for.
func (a *Accounts) registered(ctx context.Context, id storage.UserID, handle string) error {
	user := storage.UserLookups.Read(ctx, a.Store, id)[0]
	switch {
	case user.Err != nil:
		return fmt.Errorf("read user %s: %w", id, user.Err)
	case user.Value.Handle != handle:
		return apierr.IdentityTaken.Error("this identity has a user already, with the handle %q", user.Value.Handle)
	}
	return nil
}

var errLeaving = apierr.BeingDeleted.Error("the user of this identity is being deleted: register again when that has ended")

func handleTaken(handle string) error {
	return apierr.HandleTaken.Error("the handle %q is taken", handle).In("handle")
}

// CheckIdentity checks both texts of an identity.
func CheckIdentity(who storage.Identity) error {
	check := func(argument, text string) error {
		if (storage.Identity{Issuer: text, Subject: text}).Valid() {
			return nil
		}
		return apierr.IdentityMalformed.Error("%s has 1 to %d bytes, and no control characters", argument, storage.MaxIdentityText).In(argument)
	}
	return apierr.All(check("issuer", who.Issuer), check("subject", who.Subject))
}

// LinkIdentity makes an identity of a provider, which has been checked, stand for a user. Doing it again changes nothing.
// [storage.ErrUserUnknown].
func (a *Accounts) LinkIdentity(ctx context.Context, id storage.UserID, who storage.Identity) (changed bool, err error) {
	is, err := standingOf(ctx, a.Store, id)
	user := storage.UserLookups.Read(ctx, a.Store, id)[0]
	switch {
	case errors.Join(err, user.Err) != nil:
		return false, fmt.Errorf("read user %s: %w", id, errors.Join(err, user.Err))
	case !user.Found, is.State >= storage.Deleting:
		return false, fmt.Errorf("link an identity to user %s: %w", id, storage.ErrUserUnknown)
	}
	linked, err := a.IdentitiesOf(ctx, id)
	if err != nil {
		return false, err
	}
	isThere := slices.ContainsFunc(linked, func(l storage.LinkedIdentity) bool { return l.Identity == who })
	if !isThere && len(linked) >= storage.MaxIdentities {
		return false, errTooManyIdentities
	}
	switch err := a.Identities.link(ctx, who, id); {
	case errors.Is(err, storage.ErrKeyTaken):
		return false, apierr.IdentityTaken.Error("this identity stands for another user").In("subject")
	case errors.Is(err, storage.ErrLimitReached):
		return false, errTooManyIdentities
	case err != nil:
		return false, fmt.Errorf("link an identity to user %s: %w", id, err)
	}
	return !isThere, nil
}

var errTooManyIdentities = apierr.TooManyIdentities.Error("a user has at most 32 identities")

// IdentitiesOf are the identities by which a user signs in, in the order in which they were linked.
func (a *Accounts) IdentitiesOf(ctx context.Context, id storage.UserID) ([]storage.LinkedIdentity, error) {
	linked, err := storage.LinkLookups.Get(ctx, a.Identities.store, id)
	if err != nil {
		err = fmt.Errorf("read the identities of user %s: %w", id, err)
	}
	return linked, err
}

// UnlinkIdentity unlinks an identity from the user for whom it stands, and reports whether there was one.
func (a *Accounts) UnlinkIdentity(ctx context.Context, who storage.Identity) (bool, error) {
	id, _, err := a.Identities.look(ctx, who)
	if err != nil || id == 0 {
		return false, err
	}
	return a.Identities.unlink(ctx, who, id)
}

// UnlinkOwnIdentity unlinks an identity from a user who has another way to sign in: FORBIDDEN without one. It
// reports whether the identity stood for the user. One is unlinked at a time, by a lease: the identities of a
// user are on many shards, and of the last two, each would be unlinked because of the other.
func (a *Accounts) UnlinkOwnIdentity(ctx context.Context, id storage.UserID, who storage.Identity) (bool, error) {
	kind, holder, now := "unlink "+id.String(), rand.Text(), a.Now()
	until := now.Add(clocksDiffer)
	if deadline, ok := ctx.Deadline(); ok {
		until = until.Add(time.Until(deadline)) // the request unlinks nothing after it
	}
	leases := a.Identities.store
	if _, err := leases.Lease(ctx, kind, holder, 1, storage.MicrosOf(now), storage.MicrosOf(until)); errors.Is(err, storage.ErrNoLease) {
		return false, errUnlinking
	} else if err != nil {
		return false, fmt.Errorf("unlink an identity of user %s: %w", id, err)
	}
	defer func() { _ = leases.Release(context.WithoutCancel(ctx), kind, holder, 0) }() // else it ends by itself
	linked, err := a.IdentitiesOf(ctx, id)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(linked, func(l storage.LinkedIdentity) bool { return l.Identity == who }) {
		return false, nil
	}
	if len(linked) == 1 {
		kept := storage.PasswordLookups.Read(ctx, a.Store, id)[0]
		switch {
		case kept.Err != nil:
			return false, fmt.Errorf("read the password of user %s: %w", id, kept.Err)
		case a.Tokens == nil, kept.Value.Hash == "":
			return false, errOnlyWay
		}
	}
	return a.Identities.unlink(ctx, who, id)
}

var errUnlinking = apierr.ChangedAtOnce.Error("another identity of this user is being unlinked")

var errOnlyWay = apierr.OnlyIdentity.Error("this identity is your only way to sign in: link another one before")

// SignOutEverywhere ends all tokens of a user that have been made until now, as a change of the
// password does.
func (a *Accounts) SignOutEverywhere(ctx context.Context, id storage.UserID) error {
	for {
		kept := storage.PasswordLookups.Read(ctx, a.Store, id)[0]
		switch {
		case kept.Err != nil:
			return fmt.Errorf("sign user %s out: %w", id, kept.Err)
		case !kept.Found:
			return fmt.Errorf("sign user %s out: %w", id, storage.ErrUserUnknown)
		}
		same := storage.PasswordChange{Old: kept.Value.Hash, New: kept.Value.Hash, At: storage.MicrosOf(a.Now()), EndsTokens: true}
		now, err := a.Store.SetPassword(ctx, id, same)
		if errors.Is(err, storage.ErrPasswordChanged) {
			continue // the password was changed meanwhile, and sessions of the new one have to end, too
		}
		if err != nil {
			return fmt.Errorf("sign user %s out: %w", id, err)
		}
		a.Changed(id, now.ChangedAt)
		return nil
	}
}
