// Package accounts holds the rules of signing up and in, and of profiles.
package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/storage"
)

// Accounts is the service. Tokens is nil if another identity provider signs users in.
type Accounts struct {
	Store storage.Store
	// IDs makes the ids of users, which are unique in the store.
	IDs interface {
		Next(ctx context.Context) (storage.UserID, error)
	}
	Passwords *identity.Passwords
	Tokens    *identity.Issuer
	Limits    *identity.Limits
	Now       func() time.Time

	// Identities are the subjects of providers; nil: none are mapped.
	Identities *Identities

	// Reserved are handles that nobody gets by registering.
	Reserved map[string]bool

	// Changed is called for users who have changed the password or signed out, so that older tokens
	// end.
	Changed func(id storage.UserID, at storage.Micros)
	// Active is called for users who have signed in. Nil: nothing is called.
	Active func(id storage.UserID)
}

// Session is a user who is signed in.
type Session struct {
	User    storage.UserID
	Token   string
	Expires time.Time
}

// Register makes a user and signs it in: with a password, or without one if a provider has signed the
// caller in.
func (a *Accounts) Register(ctx context.Context, handle, name, password string) (Session, error) {
	caller, _ := identity.Caller(ctx)
	provided := caller.Identity.Valid() && a.Identities != nil
	switch {
	case provided && password != "":
		return Session{}, apierr.PasswordUnwanted.Error("leave the password out: your identity provider signs you in").In("password")
	case !provided && a.Tokens == nil:
		return Session{}, apierr.ProviderDecides.Error("users are made by the identity provider of this server")
	}
	handle, badHandle := newHandle(handle, a.Reserved)
	name, badName := CheckName("name", name, 1, storage.MaxNameLength)
	var badPassword error
	if !provided {
		badPassword = identity.CheckPassword(password)
	}
	if err := apierr.All(badHandle, badName, badPassword); err != nil {
		return Session{}, err
	}
	if err := a.Limits.SignUp(identity.AddressOf(ctx)); err != nil {
		return Session{}, err
	}
	if provided {
		return a.registerIdentity(ctx, caller, handle, name)
	}
	hash, err := a.Passwords.Hash(ctx, password)
	if err != nil {
		return Session{}, err
	}
	id, err := a.IDs.Next(ctx)
	if err != nil {
		return Session{}, fmt.Errorf("make an id for %s: %w", handle, err)
	}
	now := storage.MicrosOf(a.Now())
	user := storage.User{ID: id, Handle: handle, Name: name, CreatedAt: now, UpdatedAt: now}
	switch err := a.Store.Register(ctx, user, hash); {
	case errors.Is(err, storage.ErrHandleTaken):
		return Session{}, handleTaken(handle)
	case err != nil:
		return Session{}, fmt.Errorf("register %s: %w", handle, err)
	}
	return a.session(id, 0)
}

// Login signs a user in. Neither its answer nor its time distinguishes an unknown handle
// from a wrong password.
func (a *Accounts) Login(ctx context.Context, handle, password string) (Session, error) {
	if a.Tokens == nil {
		return Session{}, apierr.ProviderDecides.Error("the identity provider of this server signs users in")
	}
	handle = storage.FoldHandle(handle)
	if !storage.ValidHandle(handle) {
		return Session{}, errCredentials // anybody can see that it cannot exist: its time reveals nothing
	}
	if err := a.Limits.SignIn(identity.AddressOf(ctx), handle); err != nil {
		return Session{}, err
	}
	id, kept, err := a.credentials(ctx, handle)
	if err != nil {
		return Session{}, fmt.Errorf("log %s in: %w", handle, err)
	}
	matches, outdated, err := a.Passwords.Verify(ctx, password, kept.Hash)
	if err != nil {
		return Session{}, err
	}
	if !matches {
		return Session{}, errCredentials
	}
	if err := a.mayReturn(ctx, id); err != nil {
		return Session{}, err
	}
	a.Limits.SignedIn(identity.AddressOf(ctx), handle)
	if a.Active != nil {
		a.Active(id)
	}
	if outdated {
		a.rehash(ctx, id, kept.Hash, password)
	}
	return a.session(id, kept.ChangedAt)
}

// mayReturn refuses users who are being deleted as if they did not exist, and users who are suspended. Users who have
// deactivated their accounts sign in to come back.
func (a *Accounts) mayReturn(ctx context.Context, id storage.UserID) error {
	is, err := standingOf(ctx, a.Store, id)
	if is.State >= storage.Deleting {
		return errCredentials
	}
	return cmp.Or(err, notSuspended(is, a.Now()))
}

var errCredentials = apierr.CredentialsWrong.Error("handle or password is wrong")

// credentials returns an empty hash if nobody has the handle, which may be claimed in vain. It makes the same three look-ups for
// any handle.
func (a *Accounts) credentials(ctx context.Context, handle string) (storage.UserID, storage.Password, error) {
	found := storage.HandleLookups.Read(ctx, a.Store, handle)[0]
	if found.Err != nil {
		return 0, storage.Password{}, found.Err
	}
	id := max(found.Value, 1)
	user, password := storage.UserLookups.Read(ctx, a.Store, id)[0], storage.PasswordLookups.Read(ctx, a.Store, id)[0]
	if err := cmp.Or(user.Err, password.Err); err != nil {
		return 0, storage.Password{}, err
	}
	if user.Value.Handle != handle || !password.Found {
		return 0, storage.Password{}, nil
	}
	return found.Value, password.Value, nil
}

// rehash makes a hash with today's parameters. If that fails, or the password has been changed in
// the meantime, the present hash stays.
func (a *Accounts) rehash(ctx context.Context, id storage.UserID, old, password string) {
	if hash, err := a.Passwords.Hash(ctx, password); err == nil {
		_, _ = a.Store.SetPassword(ctx, id, storage.PasswordChange{Old: old, New: hash, At: storage.MicrosOf(a.Now())})
	}
}

// session signs a user in. passwordAt is the time of the password that was
// checked: any change since then ends the token.
func (a *Accounts) session(id storage.UserID, passwordAt storage.Micros) (Session, error) {
	token, expires, err := a.Tokens.Issue(id, passwordAt)
	if err != nil {
		return Session{}, fmt.Errorf("issue a token to user %s: %w", id, err)
	}
	return Session{id, token, expires}, nil
}

// Renew gives a user who signed in here another token before the present one ends. Users who have
// deactivated their accounts get one, too. [storage.ErrUserUnknown] if the user has been deleted.
func (a *Accounts) Renew(ctx context.Context, viewer identity.Viewer) (Session, error) {
	if a.Tokens == nil {
		return Session{}, apierr.ProviderDecides.Error("the identity provider of this server renews tokens")
	}
	token, expires, err := a.Tokens.Renew(viewer)
	if err != nil {
		return Session{}, err
	}
	err = a.mayReturn(ctx, viewer.ID)
	if errors.Is(err, errCredentials) {
		err = fmt.Errorf("renew a token of user %s: %w", viewer.ID, storage.ErrUserUnknown)
	}
	return Session{viewer.ID, token, expires}, err
}

// ChangePassword replaces the password of a user who knows the current one. That ends
// all earlier tokens of the user; the session has a new one, unless another identity
// provider signs users in.
func (a *Accounts) ChangePassword(ctx context.Context, id storage.UserID, current, next string) (Session, error) {
	address, key := identity.AddressOf(ctx), "id "+id.String() // counted as a handle is: no handle has a blank
	if err := a.Limits.SignIn(address, key); err != nil {
		return Session{}, err
	}
	kept := storage.PasswordLookups.Read(ctx, a.Store, id)[0]
	if kept.Err != nil {
		return Session{}, fmt.Errorf("change the password of user %s: %w", id, kept.Err)
	}
	if kept.Value.Hash == "" {
		return Session{}, apierr.ProviderDecides.Error("you have no password: an identity provider signs you in")
	}
	matches, _, err := a.Passwords.Verify(ctx, current, kept.Value.Hash)
	if err != nil {
		return Session{}, err
	}
	if !matches {
		return Session{}, apierr.All(errWrongPassword, apierr.In("new", identity.CheckPassword(next)))
	}
	a.Limits.SignedIn(address, key)
	made, err := a.Passwords.Hash(ctx, next)
	if err != nil {
		return Session{}, apierr.In("new", err)
	}
	change := storage.PasswordChange{Old: kept.Value.Hash, New: made, At: storage.MicrosOf(a.Now()), EndsTokens: true}
	now, err := a.Store.SetPassword(ctx, id, change)
	switch {
	case errors.Is(err, storage.ErrPasswordChanged): // or hashed again by a login
		return a.ChangePassword(ctx, id, current, next)
	case err != nil:
		return Session{}, fmt.Errorf("change the password of user %s: %w", id, err)
	}
	a.Changed(id, now.ChangedAt)
	if a.Tokens == nil {
		return Session{User: id}, nil
	}
	return a.session(id, now.ChangedAt)
}

var errWrongPassword = apierr.PasswordWrong.Error("the current password is wrong").In("current")

// UpdateProfile changes texts of a user.
func (a *Accounts) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange) (user storage.User, changed bool, err error) {
	if change, err = CheckProfile(change); err != nil {
		return storage.User{}, false, err
	}
	user, changed, err = a.Store.UpdateProfile(ctx, id, change, storage.MicrosOf(a.Now()))
	if err != nil && !errors.Is(err, storage.ErrUserUnknown) {
		err = fmt.Errorf("update the profile of user %s: %w", id, err)
	}
	return user, changed, err
}

// CheckCreated checks the handle and the name of a user with a given id, and returns them as they are stored.
func CheckCreated(id storage.UserID, handle, name string) (string, string, error) {
	handle = storage.FoldHandle(handle)
	var badHandle error
	if handle != id.ImportedHandle() {
		handle, badHandle = newHandle(handle, nil) // an operator gives reserved ones, too
	}
	name, badName := CheckName("name", name, 1, storage.MaxNameLength)
	return handle, name, apierr.All(badHandle, badName)
}

// Create makes a user with a given id and no password, and returns it. Calling it again changes
// nothing: made is false, and the user returned is not the one that exists.
func (a *Accounts) Create(ctx context.Context, id storage.UserID, handle, name string) (user storage.User, made bool, err error) {
	if handle, name, err = CheckCreated(id, handle, name); err != nil {
		return user, false, err
	}
	now := storage.MicrosOf(a.Now())
	user = storage.User{ID: id, Handle: handle, Name: name, CreatedAt: now, UpdatedAt: now}
	r := a.Store.CreateUsers(ctx, []storage.User{user})[0]
	switch {
	case errors.Is(r.Err, storage.ErrHandleTaken):
		return user, false, handleTaken(handle)
	case errors.Is(r.Err, storage.ErrIDUnusable):
		return user, false, apierr.NotPossible.Error("a user who has been deleted had this id: ids are not given out again").In("id")
	case r.Err != nil:
		return user, false, fmt.Errorf("create user %s: %w", id, r.Err)
	}
	return user, r.Value, nil
}
