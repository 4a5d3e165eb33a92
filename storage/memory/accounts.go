package memory

import (
	"context"
	"fmt"

	"kith/storage"
)

// A claim says whose a handle is.
type claim struct {
	owner storage.UserID
	at    storage.Micros
}

// Claim leaves a claim on a handle as a [Store.Register] does that ends before it
// makes its user, so that tests can ask what becomes of it.
func (s *Store) Claim(_ context.Context, handle string, id storage.UserID, at storage.Micros) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[handle] = claim{id, at}
	return nil
}

// Register implements [storage.AccountStore].
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.users[user.ID]; exists {
		return fmt.Errorf("register %d: %w", user.ID, storage.ErrUserExists)
	}
	if held, claimed := s.handles[user.Handle]; claimed && held.owner != user.ID {
		if owner := s.users[held.owner]; owner.Handle == user.Handle || user.CreatedAt-held.at <= storage.ClaimTTL {
			return fmt.Errorf("register %d with handle %q: %w", user.ID, user.Handle, storage.ErrHandleTaken)
		}
	}
	s.insert(user)
	s.passwords[user.ID] = passwordHash
	return nil
}

// PasswordHashes implements [storage.AccountStore].
func (s *Store) PasswordHashes(ctx context.Context, ids []storage.UserID) []storage.Result[string] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (string, bool) {
		_, exists := s.users[id]
		return s.passwords[id], exists
	})
}

// SetPasswordHash implements [storage.AccountStore].
func (s *Store) SetPasswordHash(ctx context.Context, id storage.UserID, hash string, at storage.Micros) error {
	_, err := s.update(ctx, id, at, func(*storage.User) { s.passwords[id] = hash })
	return err
}

// UpdateProfile implements [storage.AccountStore].
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, error) {
	return s.update(ctx, id, at, func(user *storage.User) {
		set(&user.Name, change.Name)
		set(&user.Bio, change.Bio)
		set(&user.AvatarURL, change.AvatarURL)
		set(&user.FollowingsVisibility, change.FollowingsVisibility)
		set(&user.FollowersVisibility, change.FollowersVisibility)
		set(&user.Undiscoverable, change.Undiscoverable)
		s.raiseVersion(id)
		s.activeOn(id, at)
	})
}

// update changes a user who exists.
func (s *Store) update(ctx context.Context, id storage.UserID, at storage.Micros, change func(*storage.User)) (storage.User, error) {
	if err := ctx.Err(); err != nil {
		return storage.User{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	user, exists := s.users[id]
	if !exists {
		return storage.User{}, fmt.Errorf("update user %d: %w", id, storage.ErrUserUnknown)
	}
	user.UpdatedAt = at
	change(&user)
	s.users[id] = user
	return user, nil
}

// set changes a value, unless there is no new one.
func set[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}
