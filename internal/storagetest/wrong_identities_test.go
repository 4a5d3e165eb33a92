package storagetest_test

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about identities of providers.
var identityMistakes = []mistake{
	{"identities are linked without a lock", func(s *oracle.Store, w *double.Store) {
		// It looks and links in two steps.
		w.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
			if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found && owner.Value != user {
				return storage.ErrKeyTaken
			}
			runtime.Gosched()
			if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found {
				_, _ = s.UnlinkIdentity(ctx, id, owner.Value)
			}
			return s.LinkIdentity(ctx, id, user, at)
		}
	}, "identities/OneOfManyGetsIt", lostRace},
	{"anybody unlinks an identity", func(s *oracle.Store, w *double.Store) {
		w.Instead.UnlinkIdentity = func(ctx context.Context, id storage.Identity, _ storage.UserID) (bool, error) {
			return s.UnlinkIdentity(ctx, id, storage.IdentityLookups.Read(ctx, s, id)[0].Value)
		}
	}, "identities/ItIsUnlinkedFromItsUserOnly", promiseOnly},
	{"restored identities are taken away", func(s *oracle.Store, w *double.Store) {
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			for _, row := range r.Identities {
				if owner := storage.IdentityLookups.Read(ctx, s, row.Identity)[0]; owner.Value != row.User {
					_, _ = s.UnlinkIdentity(ctx, row.Identity, owner.Value)
				}
			}
			return s.Restore(ctx, r)
		}
	}, "identities/RestoredTheyAreAsElsewhere", promiseOnly},
	{"an identity is linked once", func(s *oracle.Store, w *double.Store) {
		w.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
			if owner := storage.IdentityLookups.Read(ctx, s, id)[0]; owner.Found {
				return storage.ErrKeyTaken
			}
			return s.LinkIdentity(ctx, id, user, at)
		}
	}, "identities/AgainItChangesNothing", promiseOnly},
	{"texts of identities are made to fit", identitiesAs(func(id storage.Identity) storage.Identity {
		cut := func(text string) string {
			if text == "" {
				return "x"
			}
			return strings.ToValidUTF8(text[:min(len(text), storage.MaxIdentityText)], "x")
		}
		return storage.Identity{Issuer: cut(id.Issuer), Subject: cut(id.Subject)}
	}), "identities/WhatIsNoneIsNotFound", promiseOnly},
	{"a user has one identity", func(s *oracle.Store, w *double.Store) {
		var mu sync.Mutex
		has := map[storage.UserID]storage.Identity{}
		w.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
			mu.Lock()
			defer mu.Unlock()
			if had, other := has[user]; other && had != id {
				return nil
			}
			err := s.LinkIdentity(ctx, id, user, at)
			if err == nil {
				has[user] = id
			}
			return err
		}
	}, "identities/AUserMayHaveSeveral", promiseOnly},
	{"identities outlive their users", func(s *oracle.Store, w *double.Store) {
		// It links again what Erase has removed.
		var mu sync.Mutex
		linked := map[storage.Identity]storage.UserID{}
		w.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
			err := s.LinkIdentity(ctx, id, user, at)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				linked[id] = user
			}
			return err
		}
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			err := s.Erase(ctx, user, at)
			mu.Lock()
			defer mu.Unlock()
			for id, owner := range linked {
				if owner == user && err == nil {
					err = s.LinkIdentity(ctx, id, owner, at)
				}
			}
			return err
		}
	}, "identities/AUserWhoIsErasedHasNone", promiseOnly},
}

// identitiesAs changes every identity, as a key would that does not distinguish them.
func identitiesAs(key func(storage.Identity) storage.Identity) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.LinkIdentity = func(ctx context.Context, id storage.Identity, user storage.UserID, at storage.Micros) error {
			return s.LinkIdentity(ctx, key(id), user, at)
		}
		asks(func(id *storage.Identity) { *id = key(*id) }, storage.IdentityLookups)(s, w)
	}
}
