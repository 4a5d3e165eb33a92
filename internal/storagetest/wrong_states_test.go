package storagetest_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about the states of users and about deleting them.
var stateMistakes = []mistake{
	{"a user whose state never changed has none", answers(func(s *oracle.Store, _ storage.Side, id storage.UserID, r *storage.Result[storage.UserStanding]) {
		r.Found = r.Found && storage.UserLookups.Read(context.Background(), s, id)[0].Found
	}, storage.StateLookups), "states/EverybodyIsActiveAtFirst", promiseOnly},
	{"states leave the version", func(s *oracle.Store, w *double.Store) {
		// It subtracts from versions what changes of states have added.
		add := adding(w, version)
		w.Instead.SetState = func(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
			changed, err := s.SetState(ctx, user, state, at)
			if changed {
				add(user, -1)
			}
			return changed, err
		}
	}, "states/TheVersionRisesWithAChange", promiseOnly},
	{"the clock alone dates states", func(s *oracle.Store, w *double.Store) {
		// It reports the times that were given.
		var given memory[storage.UserID, storage.Micros]
		w.Instead.SetState = func(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
			changed, err := s.SetState(ctx, user, state, at)
			if changed {
				given.set(user, at)
			}
			return changed, err
		}
		answers(func(_ *oracle.Store, _ storage.Side, _ storage.ShardQuery[storage.StateChange], r *storage.Result[[]storage.StateChange]) {
			for i, c := range r.Value {
				at, _ := given.get(c.User)
				r.Value[i].At = cmp.Or(at, c.At)
			}
		}, storage.StateChangeLookups)(s, w)
	}, "states/TheTimeOfChangesRises", promiseOnly},
	{"changes of one time are read again", asks(func(q *storage.ShardQuery[storage.StateChange]) {
		q.After.User = 0
	}, storage.StateChangeLookups), "states/ChangesAreListedInOrder", promiseOnly},
	{"states are changed without a lock", func(s *oracle.Store, w *double.Store) {
		w.Instead.SetState = func(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
			before := storage.StateLookups.Read(ctx, s, user)[0].Value.State
			time.Sleep(time.Millisecond) // as between two statements
			_, err := s.SetState(ctx, user, state, at)
			return err == nil && before != state, err
		}
	}, "states/OneOfSeveralAtOnceChangesIt", lostRace},
	{"a deletion ends one side", func(s *oracle.Store, w *double.Store) {
		w.Instead.EndEdges = func(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
			return endEach(ctx, s, rows, at, func(r storage.Row) []storage.Side { return []storage.Side{r.Side} })
		}
	}, "endings/BothSidesGetTheSameTombstone", promiseOnly},
	{"a deletion leaves newer rows", func(s *oracle.Store, w *double.Store) {
		// It leaves the other side if it is newer than the tombstone.
		w.Instead.EndEdges = func(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
			return endEach(ctx, s, rows, at, func(r storage.Row) []storage.Side { return []storage.Side{r.Side.Other(), r.Side} })
		}
	}, "endings/WhateverIsOnTheOtherSideEnds", promiseOnly},
	{"a deletion ends one table at a time", func(s *oracle.Store, w *double.Store) {
		// It forgets all other tables.
		w.Instead.EndEdges = func(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
			follows := slices.DeleteFunc(slices.Clone(rows), func(r storage.Row) bool { return r.Side.Truth() != rows[0].Side.Truth() })
			ended := s.EndEdges(ctx, user, follows, at)
			return append(ended, make([]storage.Result[storage.Edge], len(rows)-len(ended))...)
		}
	}, "endings/AllTablesEndAtOnce", promiseOnly},
	{"marks outlive a deletion", func(s *oracle.Store, w *double.Store) {
		var kept memory[storage.Pair, storage.EdgeMark]
		w.Instead.EndEdges = func(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
			for _, r := range rows {
				keepMark(ctx, s, &kept, r.Edge.Pair())
			}
			return s.EndEdges(ctx, user, rows, at)
		}
		answers(kept.remembered, storage.MarkLookups)(s, w)
	}, "endings/MarksEndWithTheirFollows", promiseOnly},
	{"erasing again takes the handle", func(s *oracle.Store, w *double.Store) {
		// It removes the handle even if another user has it by then.
		var mu sync.Mutex
		handles := map[storage.UserID]string{}
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			mu.Lock()
			defer mu.Unlock()
			if handle, again := handles[user]; again {
				return s.Claim(ctx, handle, user, at)
			}
			handles[user] = storage.UserLookups.Read(ctx, s, user)[0].Value.Handle
			return s.Erase(ctx, user, at)
		}
	}, "erase/AgainItDoesNothing", promiseOnly},
	{"one step of rows is erased", func(s *oracle.Store, w *double.Store) {
		// It leaves marks beyond the first thousand.
		var erased memory[storage.UserID, bool]
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			erased.set(user, true)
			return s.Erase(ctx, user, at)
		}
		reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
			results := storage.MarkLookups.Read(ctx, s, pairs...)
			for i := 1000; i < len(pairs); i++ {
				if gone, _ := erased.get(pairs[i].From); gone {
					results[i] = storage.Result[storage.EdgeMark]{Value: storage.EdgeMark{Remark: "x"}, Found: true}
				}
			}
			return results
		}, storage.MarkLookups)(s, w)
	}, "erase/ManyRowsAreRemoved", promiseOnly},
	{"an erased user is unknown", erasedIs(storage.ErrUserUnknown), "erase/SeveralMayEraseAtOnce", promiseOnly},
	{"an erased user keeps what comes late", erasedIs(nil), "erase/AgainItRemovesWhatCameLate", promiseOnly},
}

// endEach ends rows one by one, on some sides.
func endEach(ctx context.Context, s *oracle.Store, rows []storage.Row, at storage.Micros, sides func(storage.Row) []storage.Side) []storage.Result[storage.Edge] {
	return storage.Each(rows, func(row storage.Row) storage.Result[storage.Edge] {
		end := row.Edge.Pair().Edge(storage.None, max(at, row.Edge.UpdateTime+1))
		for _, side := range sides(row) {
			s.Apply(ctx, side, []storage.Edge{end}, storage.IfNewer)
		}
		return storage.Result[storage.Edge]{Value: end, Found: true}
	})
}

// erasedIs is all that erasing again answers.
func erasedIs(answer error) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			if storage.StateLookups.Read(ctx, s, user)[0].Value.State == storage.Deleted {
				return answer
			}
			return s.Erase(ctx, user, at)
		}
	}
}
