package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about suspensions, and about what moderators remove.
var moderationMistakes = []mistake{
	{"a suspension is a state", moderates(func(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
		added, changed, err := s.Moderate(ctx, e)
		if changed && e.Action == storage.Suspended {
			_, err = s.SetState(ctx, e.User, storage.Active, e.At)
		}
		return added, changed, err
	}), "moderation/ASuspensionLeavesTheState", promiseOnly},
	{"suspended again is an entry", moderates(func(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
		added, changed, err := s.Moderate(ctx, e)
		if err == nil && !changed {
			s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{e}, At: e.At})
		}
		return added, changed, err
	}), "moderation/TheSameAgainChangesNothing", promiseOnly},
	{"entries have the gateway's time", moderates(restoresEntry), "moderation/TimesRise", promiseOnly},
	{"a change has its entry's time", answers(func(s *oracle.Store, _ storage.Side, _ storage.ShardQuery[storage.StateChange], r *storage.Result[[]storage.StateChange]) {
		for i, c := range r.Value {
			for _, e := range logOf(s, c.User)[:min(1, len(logOf(s, c.User)))] {
				r.Value[i].At = max(c.At, e.At)
			}
		}
	}, storage.StateChangeLookups), "moderation/ALogAheadLeavesChangesAtTheClock", promiseOnly},
	{"a comment's entry is about the post's author", moderates(func(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
		added, changed, err := s.Moderate(ctx, e)
		added.User = added.Owner
		return added, changed, err
	}), "moderation/WhatIsRemovedIsDeleted", promiseOnly},
	{"a removed post stays", moderates(func(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
		if e.Action != storage.PostRemoved {
			return s.Moderate(ctx, e)
		}
		return restoresEntry(ctx, s, e)
	}), "moderation/WhatIsRemovedIsDeleted", promiseOnly},
	{"restored the last to come decides", answers(func(s *oracle.Store, _ storage.Side, user storage.UserID, r *storage.Result[storage.UserStanding]) {
		for _, e := range logOf(s, user) { // each entry that is added decides
			if e.Action == storage.Suspended {
				r.Value.Until, r.Value.Reason = e.Until, e.Reason
			}
		}
	}, storage.StateLookups), "moderation/RestoredTheNewestDecides", promiseOnly},
	{"entries go with the user", answers(func(s *oracle.Store, _ storage.Side, _ storage.PlaceQuery, r *storage.Result[[]storage.ModerationEntry]) {
		r.Value = slices.DeleteFunc(r.Value, func(e storage.ModerationEntry) bool {
			return !storage.UserLookups.Read(context.Background(), s, e.User)[0].Found
		})
	}, storage.ModerationLookups), "moderation/TheLogOutlivesTheUser", promiseOnly},
}

// moderate is how a store adds an entry.
type moderate = func(context.Context, *oracle.Store, storage.ModerationEntry) (storage.ModerationEntry, bool, error)

// moderates adds entries otherwise.
func moderates(how moderate) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.Moderate = func(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
			return how(ctx, s, e)
		}
	}
}

// restoresEntry adds an entry as it is, and does nothing of what it says.
func restoresEntry(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{e}, At: e.At})
	return e, true, nil
}

// logOf are the entries about a user, newest first.
func logOf(s *oracle.Store, user storage.UserID) []storage.ModerationEntry {
	log, _ := storage.ModerationLookups.Get(context.Background(), s, storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: 100})
	return log
}
