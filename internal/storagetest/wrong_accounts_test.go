package storagetest_test

import (
	"context"
	"errors"
	"time"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/judge"
)

// Mistakes about registered users, their passwords and profiles.
var accountMistakes = []mistake{
	{"old users lose their handles", func(s *oracle.Store, w *double.Store) {
		w.Instead.Register = func(ctx context.Context, user storage.User, hash string) error {
			err := s.Register(ctx, user, hash)
			if errors.Is(err, storage.ErrHandleTaken) {
				id := storage.HandleLookups.Read(ctx, s, user.Handle)[0].Value
				if owner := storage.UserLookups.Read(ctx, s, id)[0]; owner.Found && user.CreatedAt-owner.Value.CreatedAt > judge.ClaimTTL {
					s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
					return s.Register(ctx, user, hash)
				}
			}
			return err
		}
	}, "accounts/AnOldClaimWithAUserIsKept", historiesToo},
	{"existing users claim handles", func(s *oracle.Store, w *double.Store) {
		w.Instead.Register = func(ctx context.Context, user storage.User, hash string) error {
			err := s.Register(ctx, user, hash)
			if errors.Is(err, storage.ErrUserExists) && !storage.HandleLookups.Read(ctx, s, user.Handle)[0].Found {
				s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
			}
			return err
		}
	}, "accounts/AnExistingUserIsRefused", historiesToo},
	{"handles are registered without a lock", func(s *oracle.Store, w *double.Store) {
		w.Instead.Register = func(ctx context.Context, user storage.User, hash string) error {
			before := storage.HandleLookups.Read(ctx, s, user.Handle)[0]
			// Others may claim now, as between two statements.
			time.Sleep(time.Millisecond)
			err := s.Register(ctx, user, hash)
			if !before.Found && errors.Is(err, storage.ErrHandleTaken) {
				return nil
			}
			return err
		}
	}, "accounts/OneHandleIsRegisteredOnce", lostRace},
	{"whoever is late keeps a claim", func(s *oracle.Store, w *double.Store) {
		w.Instead.Register = func(ctx context.Context, user storage.User, hash string) error {
			err := s.Register(ctx, user, hash)
			if errors.Is(err, storage.ErrUserExists) && !storage.HandleLookups.Read(ctx, s, user.Handle)[0].Found {
				_ = s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
			}
			return err
		}
	}, "accounts/AUserWhoIsMadeAtOnceHasOneHandle", promiseOnly},
	{"without a password there is no user", answers(func(_ *oracle.Store, _ storage.Side, _ storage.UserID, r *storage.Result[storage.Password]) {
		r.Found = r.Value.Hash != ""
	}, storage.PasswordLookups), "accounts/UsersMadeOtherwiseHaveNoPassword", historiesToo},
	{"profiles leave the version", func(s *oracle.Store, w *double.Store) {
		// It subtracts from versions what changes of profiles have added.
		add := adding(w, version)
		w.Instead.UpdateProfile = func(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
			user, changed, err := s.UpdateProfile(ctx, id, change, at)
			if changed {
				add(id, -1)
			}
			return user, changed, err
		}
	}, "accounts/TheVersionRisesWithTheProfile", historiesToo},
}
