package storagetest_test

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about identities of providers.

type identitiesGiven struct{ *oracle.Store }

func (s identitiesGiven) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found {
		return nil // like an INSERT IGNORE whose outcome nobody checks
	}
	return s.Store.LinkIdentity(ctx, id, user, at)
}

type identityOnce struct{ *oracle.Store }

func (s identityOnce) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found {
		return storage.ErrKeyTaken
	}
	return s.Store.LinkIdentity(ctx, id, user, at)
}

// identityAsText changes every identity, as a key would that does not distinguish them.
type identityAsText struct {
	*oracle.Store
	key func(storage.Identity) storage.Identity
}

func (s identityAsText) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.IdentityLookups, b, func(id *storage.Identity) { *id = s.key(*id) })
	s.Store.Bundle(ctx, b)
}

func (s identityAsText) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	return s.Store.LinkIdentity(ctx, s.key(id), user, at)
}

func oneText(id storage.Identity) storage.Identity {
	return storage.Identity{Issuer: "all", Subject: id.Issuer + id.Subject}
}

func cutText(id storage.Identity) storage.Identity {
	cut := func(text string) string {
		if text == "" {
			return "x"
		}
		return strings.ToValidUTF8(text[:min(len(text), storage.MaxIdentityText)], "x")
	}
	return storage.Identity{Issuer: cut(id.Issuer), Subject: cut(id.Subject)}
}

type oneIdentity struct {
	*oracle.Store
	mu  sync.Mutex
	has map[storage.UserID]storage.Identity
}

func (s *oneIdentity) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had, other := s.has[user]; other && had != id {
		return nil
	}
	err := s.Store.LinkIdentity(ctx, id, user, at)
	if err == nil {
		s.has[user] = id
	}
	return err
}

// identitiesStay links again what Erase has removed.
type identitiesStay struct {
	*oracle.Store
	mu     sync.Mutex
	linked map[storage.Identity]storage.UserID
}

func (s *identitiesStay) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	err := s.Store.LinkIdentity(ctx, id, user, at)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.linked[id] = user
	}
	return err
}

func (s *identitiesStay) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	err := s.Store.Erase(ctx, user, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, owner := range s.linked {
		if owner == user && err == nil {
			err = s.Store.LinkIdentity(ctx, id, owner, at)
		}
	}
	return err
}

// identityRace looks and links in two steps.
type identityRace struct{ *oracle.Store }

func (s identityRace) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found && owner.Value != user {
		return storage.ErrKeyTaken
	}
	runtime.Gosched()
	if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found {
		_, _ = s.UnlinkIdentity(ctx, id, owner.Value)
	}
	return s.Store.LinkIdentity(ctx, id, user, at)
}

type identityUnlinked struct {
	*oracle.Store
	anybodys bool
}

func (s identityUnlinked) UnlinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID) (bool, error) {
	owner := storage.IdentityLookups.Read(ctx, s, id)[0]
	if s.anybodys {
		return s.Store.UnlinkIdentity(ctx, id, owner.Value)
	}
	return owner.Value == user && owner.Found, nil
}

type identitiesUnbounded struct{ *oracle.Store }

func (s identitiesUnbounded) LinkIdentity(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
	return s.Restore(ctx, storage.Restored{Identities: []storage.LinkedIdentity{{Identity: id, User: user, At: at}}})[0].Err
}

type identitiesRestoredOver struct{ *oracle.Store }

func (s identitiesRestoredOver) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	for _, row := range r.Identities {
		if owner := storage.IdentityLookups.Read(ctx, s, row.Identity)[0]; owner.Value != row.User {
			_, _ = s.UnlinkIdentity(ctx, row.Identity, owner.Value)
		}
	}
	return s.Store.Restore(ctx, r)
}
