package memory

import (
	"context"
	"fmt"

	"kith/storage"
)

// UsersOfIdentities implements [storage.IdentityStore].
func (s *Store) UsersOfIdentities(ctx context.Context, identities []storage.Identity) []storage.Result[storage.UserID] {
	return lookUp(ctx, s, identities, func(id storage.Identity) (storage.UserID, bool) {
		user, linked := s.identities[id]
		return user, linked && id.Valid()
	})
}

// LinkIdentity implements [storage.IdentityStore].
func (s *Store) LinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID, _ storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, linked := s.identities[identity]; linked && owner != user {
		return fmt.Errorf("link an identity to user %d: %w", user, storage.ErrIdentityTaken)
	}
	s.identities[identity] = user
	return nil
}
