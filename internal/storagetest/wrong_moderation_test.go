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
	{"a change has its entry's time", func(s *oracle.Store) storage.Store { return changesByEntry{s} }, "moderation/ALogAheadLeavesChangesAtTheClock", promiseOnly},
	{"entries of the future are restored", func(s *oracle.Store) storage.Store { return restoresTheFuture{s} }, "moderation/RestoredNoneIsOfTheFuture", promiseOnly},
	{"nobody is suspended without an error", func(s *oracle.Store) storage.Store { return moderates{s, takesAnybody} }, "moderation/NobodyIsSuspended", promiseOnly},
	{"a comment's entry is about the post's author", func(s *oracle.Store) storage.Store { return moderates{s, aboutTheOwner} }, "moderation/WhatIsRemovedIsDeleted", promiseOnly},
	{"a removed post stays", func(s *oracle.Store) storage.Store { return moderates{s, removesNothing} }, "moderation/WhatIsRemovedIsDeleted", promiseOnly},
	{"the log is everybody's", func(s *oracle.Store) storage.Store { return logs{s, func(q *storage.ModerationQuery) { q.User = 0 }} }, "moderation/TheLogRunsNewestFirst", promiseOnly},
	{"the log has one page", func(s *oracle.Store) storage.Store {
		return logs{s, func(q *storage.ModerationQuery) { q.After = storage.Place{} }}
	}, "moderation/TheLogRunsNewestFirst", promiseOnly},
	{"restored the last to come decides", func(s *oracle.Store) storage.Store { return restoresInOrder{s} }, "moderation/RestoredTheNewestDecides", promiseOnly},
	{"entries go with the user", func(s *oracle.Store) storage.Store { return &logOfUsers{s} }, "moderation/TheLogOutlivesTheUser", promiseOnly},
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
		s.RestoreModeration(ctx, []storage.ModerationEntry{e}, e.At)
	}
	return added, changed, err
}

func byClock(ctx context.Context, s *oracle.Store, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	s.RestoreModeration(ctx, []storage.ModerationEntry{e}, e.At)
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
	s.RestoreModeration(ctx, []storage.ModerationEntry{e}, e.At)
	return e, true, nil
}

type logs struct {
	*oracle.Store
	ask func(*storage.ModerationQuery)
}

func (s logs) ModerationLog(ctx context.Context, q storage.ModerationQuery) ([]storage.ModerationEntry, error) {
	s.ask(&q)
	return s.Store.ModerationLog(ctx, q)
}

// changesByEntry gives changes of suspended users the times of their newest entries.
type changesByEntry struct{ *oracle.Store }

func (s changesByEntry) StateChanges(ctx context.Context, shard int, after storage.StatePosition, limit int) ([]storage.StateChange, error) {
	changes, err := s.Store.StateChanges(ctx, shard, after, limit)
	for i, c := range changes {
		if log, _ := s.ModerationLog(ctx, storage.ModerationQuery{User: c.User, Limit: 1}); len(log) > 0 {
			changes[i].At = max(c.At, log[0].At)
		}
	}
	return changes, err
}

type restoresTheFuture struct{ *oracle.Store }

func (s restoresTheFuture) RestoreModeration(ctx context.Context, entries []storage.ModerationEntry, at storage.Micros) []storage.Result[bool] {
	for _, e := range entries {
		at = max(at, e.At)
	}
	return s.Store.RestoreModeration(ctx, entries, at)
}

// restoresInOrder has each entry that is added decide.
type restoresInOrder struct{ *oracle.Store }

func (s restoresInOrder) Suspension(ctx context.Context, user storage.UserID) (storage.Suspension, error) {
	log, err := s.ModerationLog(ctx, storage.ModerationQuery{User: user, Limit: 100})
	slices.Reverse(log)
	for _, e := range log {
		if e.Action == storage.Suspended {
			return storage.Suspension{Until: e.Until, Reason: e.Reason}, err
		}
	}
	return storage.Suspension{}, err
}

// logOfUsers has no log of users who do not exist.
type logOfUsers struct{ *oracle.Store }

func (s *logOfUsers) ModerationLog(ctx context.Context, q storage.ModerationQuery) ([]storage.ModerationEntry, error) {
	list, err := s.Store.ModerationLog(ctx, q)
	return slices.DeleteFunc(list, func(e storage.ModerationEntry) bool { return !storage.UserLookups.Read(ctx, s, e.User)[0].Found }), err
}
