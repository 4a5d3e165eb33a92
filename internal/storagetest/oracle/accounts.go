package oracle

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/judge"
)

// A claim says to whom a handle belongs.
type claim struct {
	owner storage.UserID
	at    storage.Micros
}

// Claim leaves a claim on a handle, as a [Store.Register] does that fails before it makes its user,
// so that tests can check what happens to the claim.
func (s *Store) Claim(_ context.Context, handle string, id storage.UserID, at storage.Micros) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[handle] = claim{id, at}
	return nil
}

// isTaken reports whether the handle of a new user is another's, or was claimed not long ago.
func (s *Store) isTaken(user storage.User, at storage.Micros) bool {
	held, claimed := s.handles[user.Handle]
	return claimed && held.owner != user.ID && (s.users[held.owner].Handle == user.Handle || at-held.at <= judge.ClaimTTL)
}

// Register implements [storage.Store].
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.write(ctx)()
	if _, exists := s.users[user.ID]; exists {
		return fmt.Errorf("register %d: %w", user.ID, storage.ErrUserExists)
	}
	if err := judge.NewUser(user.ID, s.states[user.ID].State); err != nil {
		return err
	}
	if s.isTaken(user, user.CreatedAt) {
		return fmt.Errorf("register %d with handle %q: %w", user.ID, user.Handle, storage.ErrHandleTaken)
	}
	s.insert(user)
	s.passwords[user.ID] = passwordHash
	return nil
}

// findPasswords answers [storage.PasswordLookups].
func (s *Store) findPasswords(id storage.UserID) (storage.Password, bool) {
	_, exists := s.users[id]
	return s.passwordOf(id), exists
}

func (s *Store) passwordOf(id storage.UserID) storage.Password {
	return storage.Password{Hash: s.passwords[id], ChangedAt: s.states[id].PasswordAt}
}

// SetPassword implements [storage.Store].
func (s *Store) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (now storage.Password, err error) {
	_, err = s.update(ctx, id, func(user *storage.User) error {
		user.UpdatedAt = change.At
		if s.passwords[id] != change.Old {
			return fmt.Errorf("set the password of user %d: %w", id, storage.ErrPasswordChanged)
		}
		s.passwords[id] = change.New
		s.change.AddProfile(id)
		if change.EndsTokens {
			state := s.states[id]
			state.User, state.At = id, max(change.At, state.At+1)
			state.PasswordAt = state.At
			s.states[id] = state
			s.change.AddUser(id, storage.Standing)
		}
		now = s.passwordOf(id)
		return nil
	})
	return now, err
}

// UpdateProfile implements [storage.Store].
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (user storage.User, changed bool, err error) {
	user, err = s.update(ctx, id, func(user *storage.User) error {
		before := *user
		if err := change.Apply(user); err != nil || *user == before {
			return err
		}
		changed, user.UpdatedAt = true, at
		s.raiseVersion(id)
		s.activeOn(id, at)
		counts, now := s.counts[id], *user
		s.change.AddCounts(storage.UserChange{User: id, Counts: counts, Before: counts.Version, Profile: &now})
		return nil
	})
	return user, changed, err
}

// update changes a user who exists.
func (s *Store) update(ctx context.Context, id storage.UserID, change func(*storage.User) error) (storage.User, error) {
	if err := ctx.Err(); err != nil {
		return storage.User{}, err
	}
	defer s.write(ctx)()
	user, exists := s.users[id]
	if !exists {
		return storage.User{}, fmt.Errorf("update user %d: %w", id, storage.ErrUserUnknown)
	}
	if err := change(&user); err != nil {
		return storage.User{}, err
	}
	s.users[id] = user
	return user, nil
}
