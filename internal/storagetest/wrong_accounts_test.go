package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

type claimsNeverLapse struct{ *oracle.Store }

func (s claimsNeverLapse) Register(ctx context.Context, user storage.User, hash string) error {
	if owner := storage.HandleLookups.Read(ctx, s, user.Handle)[0]; owner.Found && owner.Value != user.ID {
		return storage.ErrHandleTaken
	}
	return s.Store.Register(ctx, user, hash)
}

type claimsLapseAtOnce struct{ *oracle.Store }

func (s claimsLapseAtOnce) Register(ctx context.Context, user storage.User, hash string) error {
	owner := storage.HandleLookups.Read(ctx, s, user.Handle)[0].Value
	if !storage.UserLookups.Read(ctx, s, owner)[0].Found {
		s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
	}
	return s.Store.Register(ctx, user, hash)
}

type oldUsersLoseHandles struct{ *oracle.Store }

func (s oldUsersLoseHandles) Register(ctx context.Context, user storage.User, hash string) error {
	err := s.Store.Register(ctx, user, hash)
	if errors.Is(err, storage.ErrHandleTaken) {
		id := storage.HandleLookups.Read(ctx, s, user.Handle)[0].Value
		if owner := storage.UserLookups.Read(ctx, s, id)[0]; owner.Found && user.CreatedAt-owner.Value.CreatedAt > storage.ClaimTTL {
			s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
			return s.Store.Register(ctx, user, hash)
		}
	}
	return err
}

type existingUsersClaim struct{ *oracle.Store }

func (s existingUsersClaim) Register(ctx context.Context, user storage.User, hash string) error {
	err := s.Store.Register(ctx, user, hash)
	if errors.Is(err, storage.ErrUserExists) && !storage.HandleLookups.Read(ctx, s, user.Handle)[0].Found {
		s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
	}
	return err
}

type unlockedRegister struct{ *oracle.Store }

func (s unlockedRegister) Register(ctx context.Context, user storage.User, hash string) error {
	before := storage.HandleLookups.Read(ctx, s, user.Handle)[0]
	// Others may claim now, as between two statements.
	time.Sleep(time.Millisecond)
	err := s.Store.Register(ctx, user, hash)
	if !before.Found && errors.Is(err, storage.ErrHandleTaken) {
		return nil
	}
	return err
}

type keepsClaims struct{ *oracle.Store }

func (s keepsClaims) Register(ctx context.Context, user storage.User, hash string) error {
	err := s.Store.Register(ctx, user, hash)
	if errors.Is(err, storage.ErrUserExists) && !storage.HandleLookups.Read(ctx, s, user.Handle)[0].Found {
		_ = s.Claim(ctx, user.Handle, user.ID, user.CreatedAt)
	}
	return err
}

type passwordsOfNobody struct{ *oracle.Store }

func (s passwordsOfNobody) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	now, err := s.Store.SetPassword(ctx, id, change)
	if storage.CountLookups.Read(ctx, s, id)[0].Found {
		return now, nil // like an UPDATE that found no row
	}
	return now, err
}

type anyPasswordGoes struct{ *oracle.Store }

func (s anyPasswordGoes) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	change.Old = storage.PasswordLookups.Read(ctx, s, id)[0].Value.Hash
	return s.Store.SetPassword(ctx, id, change)
}

type passwordsInSilence struct{ *oracle.Store }

func (s passwordsInSilence) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	change.EndsTokens = false
	return s.Store.SetPassword(ctx, id, change)
}

type emptyIsNil struct{ *oracle.Store }

func (s emptyIsNil) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	for _, text := range change.Texts() {
		if *text != nil && **text == "" {
			*text = nil
		}
	}
	return s.Store.UpdateProfile(ctx, id, change, at)
}

// profileKeepsVersion subtracts from versions what changes of profiles have added.
type profileKeepsVersion struct{ *counting }

func (s profileKeepsVersion) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	user, changed, err := s.Store.UpdateProfile(ctx, id, change, at)
	if changed {
		s.add(id, -1)
	}
	return user, changed, err
}

// anotherSlot gives an owner who has a slot the next one.
type anotherSlot struct{ *oracle.Store }

func (s anotherSlot) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	for {
		if slot, err := s.Store.Lease(ctx, kind, owner, slots, now, until); err != nil || slot == slots-1 {
			return slot, err
		}
		owner += "'"
	}
}

type leasesLastForEver struct{ *oracle.Store }

func (s leasesLastForEver) Lease(ctx context.Context, kind, owner string, slots int, _, until storage.Micros) (int, error) {
	return s.Store.Lease(ctx, kind, owner, slots, 0, until)
}

type releasesSlot struct{ *oracle.Store }

func (s releasesSlot) Release(ctx context.Context, kind, owner string, until storage.Micros) error {
	if err := s.Store.Release(ctx, kind, owner, until); err != nil {
		return err
	}
	return s.Store.Release(ctx, kind, "another", until) // its next owner
}

type releasesRenewed struct{ *oracle.Store }

func (s releasesRenewed) Release(ctx context.Context, kind, owner string, _ storage.Micros) error {
	return s.Store.Release(ctx, kind, owner, 0)
}

type unlockedLeases struct {
	*oracle.Store
}

func (s unlockedLeases) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	// It looks for the slot that is free now. Others may take theirs in between.
	slot, err := s.Store.Lease(ctx, kind, "a look", slots, now, until)
	s.Store.Release(ctx, kind, "a look", 0)
	if err != nil {
		return 0, err
	}
	time.Sleep(100 * time.Microsecond)
	if _, err := s.Store.Lease(ctx, kind, owner, slots, now, until); err != nil {
		return 0, err
	}
	return slot, nil
}

type logsOneSide struct{ *oracle.Store }

func (s logsOneSide) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	entries, err := s.Store.ReadLog(ctx, shard, after, limit)
	return slices.DeleteFunc(entries, func(e storage.LogEntry) bool { return e.Side == storage.Inverse }), err
}

type prunedInSilence struct{ *oracle.Store }

func (s prunedInSilence) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	for {
		entries, err := s.Store.ReadLog(ctx, shard, after, limit)
		if !errors.Is(err, storage.ErrLogPruned) {
			return entries, err
		}
		after++
	}
}

// emptiedInSilence notices missing entries only if an entry is left.
type emptiedInSilence struct{ *oracle.Store }

func (s emptiedInSilence) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	entries, err := s.Store.ReadLog(ctx, shard, after, limit)
	last, _ := s.LastOfLog(ctx, shard)
	if left, _ := s.Store.ReadLog(ctx, shard, last-1, 1); errors.Is(err, storage.ErrLogPruned) && len(left) == 0 {
		return nil, nil
	}
	return entries, err
}

type readsToTheEnd struct{ *oracle.Store }

func (s readsToTheEnd) ReadLog(ctx context.Context, shard int, after int64, _ int) ([]storage.LogEntry, error) {
	return s.Store.ReadLog(ctx, shard, after, 1<<30)
}
