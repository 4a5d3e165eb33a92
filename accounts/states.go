package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"kith/graph/apierr"
	"kith/storage"
)

// An account is active, deactivated or being deleted. The store keeps this state on the user's own
// shard; gateways keep the hidden users in memory, see [HiddenUsers].

// States changes the states of accounts.
type States struct {
	Store       storage.StateStore
	Relations   Ender
	HiddenUsers *HiddenUsers
	// Notify lets other gateways know that a user's state has changed. It must not wait.
	Notify func(storage.UserID)
	Now    func() time.Time
}

// Ender ends everything between a user and others, see [kith/social.Relations.EndAll].
type Ender interface {
	EndAll(ctx context.Context, user storage.UserID) error
	// EndDue ends the relations of a shard whose time has come, if there are any and the caller may.
	EndDue(ctx context.Context, shard int, may func() bool) error
}

// MayAct decides about one of [HiddenUsers]: such a user may not change anything. It asks the store,
// because the user may have reactivated the account through another gateway.
func (s *States) MayAct(ctx context.Context, user storage.UserID) error {
	state, err := stateOf(ctx, s.Store, user)
	switch {
	case err != nil:
		return err
	case state == storage.Active:
		s.HiddenUsers.Note(user, state)
		return nil
	case state == storage.Deactivated:
		return apierr.Deactivated.Error("your account is deactivated: reactivate it first")
	}
	return ended(state)
}

type stateReader interface {
	// StatesOf is the method of [storage.StateStore].
	StatesOf(ctx context.Context, users []storage.UserID) []storage.Result[storage.UserState]
}

func stateOf(ctx context.Context, store stateReader, user storage.UserID) (storage.UserState, error) {
	r := store.StatesOf(ctx, []storage.UserID{user})[0]
	if r.Err != nil {
		return r.Value, fmt.Errorf("read the state of user %s: %w", user, r.Err)
	}
	return r.Value, nil
}

// ended is the error for a user who is being deleted, or has been.
func ended(state storage.UserState) error {
	if state == storage.Deleted {
		return storage.ErrUserUnknown
	}
	return errDeleting
}

// errDeleting: a deletion cannot be undone.
var errDeleting = apierr.BeingDeleted.Error("your account is being deleted")

// patience is how long a client waits for its deletion. The rest
// is then done in the background.
const patience = 2 * time.Second

// Deactivate hides a user until it comes back.
func (s *States) Deactivate(ctx context.Context, user storage.UserID) (changed bool, err error) {
	return s.set(ctx, user, storage.Deactivated)
}

// Reactivate shows a user again.
func (s *States) Reactivate(ctx context.Context, user storage.UserID) (changed bool, err error) {
	return s.set(ctx, user, storage.Active)
}

// Delete hides a user permanently and removes it, or begins to. It reports whether everything is
// removed. The [Sweeper] of any gateway removes the rest; calling Delete again speeds that up. Once
// everything is removed, the error is [storage.ErrUserUnknown].
func (s *States) Delete(ctx context.Context, user storage.UserID) (complete bool, err error) {
	if _, err := s.set(ctx, user, storage.Deleting); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return s.finish(ctx, user) == nil, nil
}

// set changes a state, and publishes the change.
func (s *States) set(ctx context.Context, user storage.UserID, state storage.UserState) (changed bool, err error) {
	changed, err = s.Store.SetState(ctx, user, state, storage.MicrosOf(s.Now()))
	switch {
	case errors.Is(err, storage.ErrForbidden):
		state, err := stateOf(ctx, s.Store, user)
		return false, cmp.Or(err, ended(state))
	case err != nil:
		return false, fmt.Errorf("set the state of user %s: %w", user, err)
	}
	s.HiddenUsers.Note(user, state)
	if changed {
		s.Notify(user)
	}
	return changed, nil
}

// finish removes the rest of a user who is being deleted.
func (s *States) finish(ctx context.Context, user storage.UserID) error {
	if err := s.Relations.EndAll(ctx, user); err != nil {
		return fmt.Errorf("delete user %s: %w", user, err)
	}
	if err := s.Store.Erase(ctx, user, storage.MicrosOf(s.Now())); err != nil {
		return fmt.Errorf("erase user %s: %w", user, err)
	}
	s.HiddenUsers.Note(user, storage.Deleted)
	s.Notify(user)
	return nil
}
