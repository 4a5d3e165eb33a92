package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

var moderationMistakes = []mistake{
	{"a suspension is a state", func(s *oracle.Store) storage.Store { return moderates{s, suspendsByState} }, "moderation/ASuspensionLeavesTheState", promiseOnly},
	{"suspended again is an entry", func(s *oracle.Store) storage.Store { return moderates{s, addsAlways} }, "moderation/TheSameAgainChangesNothing", promiseOnly},
	{"entries have the gateway's time", func(s *oracle.Store) storage.Store { return moderates{s, byClock} }, "moderation/TimesRise", promiseOnly},
	{"ids are given out again", func(s *oracle.Store) storage.Store { return givesIDsAgain{s} }, "creation/SomeIDsAreNobodys", promiseOnly},
	{"a change has its entry's time", answers(func(s *oracle.Store, _ storage.Side, _ storage.ShardQuery[storage.StateChange], r *storage.Result[[]storage.StateChange]) {
		for i, c := range r.Value {
			for _, e := range logOf(s, c.User)[:min(1, len(logOf(s, c.User)))] {
				r.Value[i].At = max(c.At, e.At)
			}
		}
	}, storage.StateChangeLookups), "moderation/ALogAheadLeavesChangesAtTheClock", promiseOnly},
	{"nobody is suspended without an error", func(s *oracle.Store) storage.Store { return moderates{s, takesAnybody} }, "moderation/NobodyIsSuspended", promiseOnly},
	{"a comment's entry is about the post's author", func(s *oracle.Store) storage.Store { return moderates{s, aboutTheOwner} }, "moderation/WhatIsRemovedIsDeleted", promiseOnly},
	{"a removed post stays", func(s *oracle.Store) storage.Store { return moderates{s, removesNothing} }, "moderation/WhatIsRemovedIsDeleted", promiseOnly},
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

// logOf are the entries about a user, newest first.
func logOf(s *oracle.Store, user storage.UserID) []storage.ModerationEntry {
	log, _ := storage.ModerationLookups.Get(context.Background(), s, storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: 100})
	return log
}

type moderates struct {
	*oracle.Store
	how func(context.Context, *oracle.Store, storage.ModerationEntry) (storage.ModerationEntry, bool, error)
}

func (s moderates) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	return s.how(ctx, s.Store, e)
}

func suspendsByState(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	added, changed, err := s.Moderate(ctx, e)
	if changed && e.Action == storage.Suspended {
		_, err = s.SetState(ctx, e.User, storage.Active, e.At)
	}
	return added, changed, err
}

func addsAlways(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	added, changed, err := s.Moderate(ctx, e)
	if err == nil && !changed {
		s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{e}, At: e.At})
	}
	return added, changed, err
}

func byClock(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{e}, At: e.At})
	return e, true, nil
}

func takesAnybody(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	added, changed, _ := s.Moderate(ctx, e)
	return added, changed, nil
}

func aboutTheOwner(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	added, changed, err := s.Moderate(ctx, e)
	added.User = added.Owner
	return added, changed, err
}

func removesNothing(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	if e.Action != storage.PostRemoved {
		return s.Moderate(ctx, e)
	}
	s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{e}, At: e.At})
	return e, true, nil
}
