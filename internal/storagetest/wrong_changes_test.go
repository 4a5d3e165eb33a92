package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about changes of follows.
var changeMistakes = []mistake{
	{"following again moves the edge", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		for i, change := range changes {
			row := &results[i].Value.Row
			if !results[i].Value.Changed && row.Type == storage.Following && change.At > row.UpdateTime {
				row.UpdateTime = change.At
				s.Apply(ctx, storage.Forward, []storage.Edge{*row}, storage.IfNewer)
			}
		}
		return results
	}), "changes/ARowOfTheWantedTypeKeepsItsTimeAndPosition", historiesToo},
	{"the clock alone gives the time", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		for i, change := range changes {
			if results[i].Value.Changed {
				results[i].Value.Row.UpdateTime = change.At
			}
		}
		return results
	}), "changes/TheTimeRisesWhenTheClockGoesBack", historiesToo},
	{"ending nothing leaves a tombstone", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		for i, change := range changes {
			if results[i].Found && results[i].Value.Row.UpdateTime == 0 {
				tombstone := storage.Edge{From: from, To: change.To, UpdateTime: change.At}
				s.Apply(ctx, storage.Forward, []storage.Edge{tombstone}, storage.IfNewer)
			}
		}
		return results
	}), "changes/EndingNothingWritesNothing", historiesToo},
	{"only the last change of a user is judged", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		last := slices.Clone(changes)
		for i := range last {
			for _, later := range changes[i+1:] {
				if later.To == last[i].To {
					last[i].Type = later.Type
				}
			}
		}
		return s.ChangeEdges(ctx, storage.Forward, from, last, o)
	}), "changes/ChangesOfOneUserAreJudgedInTurn", historiesToo},
	{"the limit refuses whole calls", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		follows := storage.CountLookups.Read(ctx, s, from)[0].Value.Following
		for _, change := range changes {
			follows += int64(change.Type & 1)
		}
		if o.MaxFollowing == 0 || follows <= o.MaxFollowing {
			return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		}
		results := make(changeds, len(changes))
		for i := range results {
			results[i].Err = storage.ErrLimitReached
		}
		return results
	}), "changes/OnlyWhatIsBeyondTheLimitIsRefused", historiesToo},
	{"the version rises with every call", func(s *oracle.Store, w *double.Store) {
		add := adding(w, version)
		follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
			add(from, 1)
			return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		})(s, w)
	}, "changes/TheVersionRisesOnceWithACall", historiesToo},
	{"each change is a transaction", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := make(changeds, 0, len(changes))
		for _, change := range changes {
			results = append(results, s.ChangeEdges(ctx, storage.Forward, from, edgeChanges{change}, o)...)
		}
		return results
	}), "changes/TheVersionRisesOnceWithACall", promiseOnly},
	{"the inverse is reported but not written", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, options{MaxFollowing: o.MaxFollowing})
		for i := range results {
			results[i].Value.Inverse = results[i].Value.Changed && o.Inverse
		}
		return results
	}), "inverse/WhatIsLocalIsWritten", historiesToo},
	{"the inverse is written over newer rows", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		// It writes the inverse row even over a newer one, by using the time of that
		// row.
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		for i := range results {
			if changed := &results[i].Value; o.Inverse && changed.Changed && !changed.Inverse {
				row := storage.EdgeLookups[storage.Inverse].Read(ctx, s, changed.Row.Pair())[0].Value
				row.Type, row.UpdateTime = changed.Row.Type, row.UpdateTime+1
				s.Apply(ctx, storage.Inverse, []storage.Edge{row}, storage.IfNewer)
				changed.Inverse = true
			}
		}
		return results
	}), "inverse/ANewerRowStays", historiesToo},
	{"the limit is judged without a lock", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		// It looks at the count before it writes.
		if o.MaxFollowing == 0 {
			return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		}
		room := o.MaxFollowing - storage.CountLookups.Read(ctx, s, from)[0].Value.Following
		// Others may write now, as between two statements.
		time.Sleep(time.Millisecond)
		now := storage.CountLookups.Read(ctx, s, from)[0].Value.Following
		return s.ChangeEdges(ctx, storage.Forward, from, changes, options{MaxFollowing: max(1, now+room), Inverse: o.Inverse})
	}), "changesAtOnce/TheLimitHolds", lostRace},
	{"callers hear of deadlocks", func(s *oracle.Store, w *double.Store) {
		var writing sync.Mutex
		follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
			if !writing.TryLock() {
				return storage.Each(changes, func(storage.EdgeChange) storage.Result[storage.Changed] {
					return storage.Result[storage.Changed]{Err: errors.New("deadlock found when trying to get lock")}
				})
			}
			defer writing.Unlock()
			time.Sleep(100 * time.Microsecond) // as long as two statements
			return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		})(s, w)
	}, "changesAtOnce/ManyMayFollowMany", lostRace},
	{"edges are judged without a lock", follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		// It judges by rows that it read before the lock: two writers of the same change both
		// write it.
		if len(changes) != 1 {
			return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		}
		pair := storage.Pair{From: from, To: changes[0].To}
		before := storage.EdgeLookups[storage.Forward].Read(ctx, s, pair)[0].Value
		time.Sleep(300 * time.Microsecond)
		results := s.ChangeEdges(ctx, storage.Forward, from, changes, o)
		if changed := &results[0].Value; !changed.Changed && before.Type != changes[0].Type && results[0].Err == nil {
			changed.Row.UpdateTime++
			changed.Changed = s.Apply(ctx, storage.Forward, []storage.Edge{changed.Row}, storage.IfNewer)[0].Value.Changed
		}
		return results
	}), "changesAtOnce/OnePairHasOneStateAfterAnother", lostRace},
}
