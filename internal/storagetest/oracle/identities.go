package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// findIdentities answers [storage.IdentityLookups].
func (s *Store) findIdentities(id storage.Identity) (storage.UserID, bool) {
	link, linked := s.identities[id]
	return link.User, linked && id.Valid()
}

// LinkIdentity implements [storage.Store].
func (s *Store) LinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID, at storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of, _ := s.findLinks(user)
	if _, linked := s.identities[identity]; !linked && len(of) >= storage.MaxIdentities {
		return fmt.Errorf("link an identity to user %d: %w", user, storage.ErrLimitReached)
	}
	_, err := s.restoreIdentity(storage.LinkedIdentity{Identity: identity, User: user, At: at})
	return err
}

// restoreIdentity reports whether it has linked an identity that was free.
func (s *Store) restoreIdentity(link storage.LinkedIdentity) (bool, error) {
	was, linked := s.identities[link.Identity]
	if linked && was.User != link.User {
		return false, fmt.Errorf("link an identity to user %d: %w", link.User, storage.ErrKeyTaken)
	}
	if !linked {
		s.identities[link.Identity] = link
	}
	return !linked, nil
}

// UnlinkIdentity implements [storage.Store].
func (s *Store) UnlinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if link, linked := s.identities[identity]; !linked || link.User != user {
		return false, nil
	}
	delete(s.identities, identity)
	return true, nil
}

// findLinks answers [storage.LinkLookups].
func (s *Store) findLinks(user storage.UserID) (list []storage.LinkedIdentity, found bool) {
	for _, link := range s.identities {
		if link.User == user {
			list = append(list, link)
		}
	}
	slices.SortFunc(list, storage.LinkedIdentity.Compare)
	return list, true
}

// allIdentities are in the order of their digests.
func (s *Store) allIdentities() (list []storage.LinkedIdentity) {
	for _, link := range s.identities {
		list = append(list, link)
	}
	slices.SortFunc(list, func(a, b storage.LinkedIdentity) int { return cmp.Compare(a.Digest(), b.Digest()) })
	return list
}

// Identities implements [contents.Moment].
func (m *moment) Identities(ctx context.Context, after string, limit int) ([]storage.LinkedIdentity, error) {
	page := slices.DeleteFunc(slices.Clone(m.identities), func(l storage.LinkedIdentity) bool { return l.Digest() <= after })
	return page[:min(limit, len(page))], ctx.Err()
}
