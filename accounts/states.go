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

// An account is active, deactivated or being deleted, and may be suspended besides. The store keeps this on the user's own
// shard; gateways keep the hidden users in memory, see [HiddenUsers].

// States changes the states of accounts.
type States struct {
	Store interface {
		storage.Answerer
		SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (changed bool, err error)
		Erase(ctx context.Context, user storage.UserID, at storage.Micros) error
		Moderate(ctx context.Context, entry storage.ModerationEntry) (added storage.ModerationEntry, changed bool, err error)
	}
	Relations interface {
		// EndAll ends everything between a user and others, see [kith/social.Relations.EndAll].
		EndAll(ctx context.Context, user storage.UserID) error
	}
	HiddenUsers *HiddenUsers
	Now         func() time.Time
}

// MayAct decides about one of [HiddenUsers]: such a user may not change anything. It asks the store,
// because the user may have reactivated the account through another gateway.
func (s *States) MayAct(ctx context.Context, user storage.UserID) error {
	is, err := standingOf(ctx, s.Store, user)
	if err = cmp.Or(err, notSuspended(is, s.Now())); err != nil {
		return err
	}
	switch is.State {
	case storage.Active:
		s.HiddenUsers.Note(user, is.State, 0)
		return nil
	case storage.Deactivated:
		return apierr.Deactivated.Error("your account is deactivated: reactivate it first")
	}
	return ended(is.State)
}

// notSuspended refuses a user who is suspended, and tells this user why.
func notSuspended(is storage.UserStanding, now time.Time) error {
	if is.Until <= storage.MicrosOf(now) {
		return nil
	}
	until, end := any(nil), ""
	if is.Until != storage.Forever {
		until = is.Until.Time().Format("2006-01-02T15:04:05.000000Z") // as a DateTime
		end = fmt.Sprintf(" until %s", until)
	}
	refused := apierr.Suspended.Error("your account is suspended%s: %s", end, is.Reason)
	refused.Details = map[string]any{"until": until}
	return refused
}

// Standing is the state of a user as the user is told of it, without a suspension that has ended.
func (s *States) Standing(ctx context.Context, user storage.UserID) (storage.UserStanding, error) {
	is, err := standingOf(ctx, s.Store, user)
	if is.Until <= storage.MicrosOf(s.Now()) {
		is = storage.UserStanding{State: is.State}
	}
	return is, err
}

func standingOf(ctx context.Context, store storage.Answerer, user storage.UserID) (storage.UserStanding, error) {
	is, err := storage.StateLookups.Get(ctx, store, user)
	if err != nil {
		err = fmt.Errorf("read the state of user %s: %w", user, err)
	}
	return is, err
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

// SetOwn deactivates or reactivates a user who asks for it, which one who is suspended cannot.
func (s *States) SetOwn(ctx context.Context, user storage.UserID, state storage.UserState) (changed bool, err error) {
	is, err := standingOf(ctx, s.Store, user)
	if err = cmp.Or(err, notSuspended(is, s.Now())); err != nil {
		return false, err
	}
	return s.set(ctx, user, state)
}

// Moderate does what an operator's entry says, which has been checked, or keeps a report, see [storage.Store].
// [storage.ErrUserUnknown] for who reports.
func (s *States) Moderate(ctx context.Context, e storage.ModerationEntry) (added storage.ModerationEntry, changed bool, err error) {
	e.At = storage.MicrosOf(s.Now())
	added, changed, err = s.Store.Moderate(ctx, e)
	switch {
	case errors.Is(err, storage.ErrUserUnknown) && e.Action <= storage.Reinstated:
		return e, false, apierr.UserNotFound.Error("there is no such user").In("userId")
	case err != nil:
		return e, false, fmt.Errorf("moderate user %s: %w", e.User, err)
	case e.Action > storage.Reinstated:
		return added, changed, nil
	}
	// Without its state the user is hidden, or shown, as soon as the shard is read again.
	if is, unknown := standingOf(ctx, s.Store, e.User); changed && unknown == nil {
		s.HiddenUsers.Note(e.User, is.State, e.Until)
	}
	return added, changed, nil
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

// set changes a state.
func (s *States) set(ctx context.Context, user storage.UserID, state storage.UserState) (changed bool, err error) {
	changed, err = s.Store.SetState(ctx, user, state, storage.MicrosOf(s.Now()))
	switch {
	case errors.Is(err, storage.ErrForbidden):
		is, err := standingOf(ctx, s.Store, user)
		return false, cmp.Or(err, ended(is.State))
	case err != nil:
		return false, fmt.Errorf("set the state of user %s: %w", user, err)
	}
	s.HiddenUsers.Note(user, state, 0)
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
	s.HiddenUsers.Note(user, storage.Deleted, 0)
	return nil
}
