package storagetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// What ChangeEdges takes and returns, as short names.
type (
	edgeChanges = []storage.EdgeChange
	options     = storage.ChangeOptions
	changeds    = []storage.Result[storage.Changed]
)

type followsAgain struct{ *oracle.Store }

func (s followsAgain) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i, change := range changes {
		row := &results[i].Value.Row
		if !results[i].Value.Changed && row.Type == storage.Following && change.At > row.UpdateTime {
			row.UpdateTime = change.At
			s.Apply(ctx, storage.Forward, []storage.Edge{*row}, storage.IfNewer)
		}
	}
	return results
}

type clockOnly struct{ *oracle.Store }

func (s clockOnly) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i, change := range changes {
		if results[i].Value.Changed {
			results[i].Value.Row.UpdateTime = change.At
		}
	}
	return results
}

type endsNothing struct{ *oracle.Store }

func (s endsNothing) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i, change := range changes {
		if results[i].Found && results[i].Value.Row.UpdateTime == 0 {
			tombstone := storage.Edge{From: from, To: change.To, UpdateTime: change.At}
			s.Apply(ctx, storage.Forward, []storage.Edge{tombstone}, storage.IfNewer)
		}
	}
	return results
}

type lastChange struct{ *oracle.Store }

func (s lastChange) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	last := slices.Clone(changes)
	for i := range last {
		for _, later := range changes[i+1:] {
			if later.To == last[i].To {
				last[i].Type = later.Type
			}
		}
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, last, o)
}

type wholeCallLimited struct{ *oracle.Store }

func (s wholeCallLimited) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	follows := storage.CountLookups.Read(ctx, s, from)[0].Value.Following
	for _, change := range changes {
		follows += int64(change.Type & 1)
	}
	if o.MaxFollowing == 0 || follows <= o.MaxFollowing {
		return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}
	results := make(changeds, len(changes))
	for i := range results {
		results[i].Err = storage.ErrLimitReached
	}
	return results
}

type changesRaise struct {
	*oracle.Store
	mu     sync.Mutex
	raised map[storage.UserID]int64
}

func newChangesRaise(s *oracle.Store) storage.Store {
	return &changesRaise{Store: s, raised: map[storage.UserID]int64{}}
}

func (s *changesRaise) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raised[from]++
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

func (s *changesRaise) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := storage.CountLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		results[i].Value.Version += s.raised[id]
	}
	return results
}

func (s *changesRaise) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

type oneByOne struct{ *oracle.Store }

func (s oneByOne) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := make(changeds, 0, len(changes))
	for _, change := range changes {
		results = append(results, s.Store.ChangeEdges(ctx, storage.Forward, from, edgeChanges{change}, o)...)
	}
	return results
}

type anybodyChanges struct{ *oracle.Store }

func (s anybodyChanges) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	if !storage.CountLookups.Read(ctx, s, from)[0].Found {
		s.CreateUsers(ctx, []storage.User{{ID: from, Handle: from.String()}})
	}
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

type alwaysInverse struct{ *oracle.Store }

func (s alwaysInverse) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, options{MaxFollowing: o.MaxFollowing, Inverse: true})
	for i := range results {
		results[i].Value.Inverse = results[i].Value.Inverse && o.Inverse
	}
	return results
}

type inverseClaimed struct{ *oracle.Store }

func (s inverseClaimed) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, options{MaxFollowing: o.MaxFollowing})
	for i := range results {
		results[i].Value.Inverse = results[i].Value.Changed && o.Inverse
	}
	return results
}

type inverseUnreported struct{ *oracle.Store }

func (s inverseUnreported) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i := range results {
		results[i].Value.Inverse = false
	}
	return results
}

// inverseOverwrites writes the inverse row even over a newer one, by using the time of that
// row.
type inverseOverwrites struct{ *oracle.Store }

func (s inverseOverwrites) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	for i := range results {
		if changed := &results[i].Value; o.Inverse && changed.Changed && !changed.Inverse {
			row := storage.EdgeLookups[storage.Inverse].Read(ctx, s, changed.Row.Pair())[0].Value
			row.Type, row.UpdateTime = changed.Row.Type, row.UpdateTime+1
			s.Apply(ctx, storage.Inverse, []storage.Edge{row}, storage.IfNewer)
			changed.Inverse = true
		}
	}
	return results
}

// unlimitedBlocks are blocks without a limit.
type unlimitedBlocks struct{ *oracle.Store }

func (s unlimitedBlocks) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	o.MaxBlocks = 0
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// unlockedLimit looks at the count before it writes.
type unlockedLimit struct{ *oracle.Store }

func (s unlockedLimit) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	if o.MaxFollowing == 0 {
		return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}
	room := o.MaxFollowing - storage.CountLookups.Read(ctx, s, from)[0].Value.Following
	// Others may write now, as between two statements.
	time.Sleep(time.Millisecond)
	now := storage.CountLookups.Read(ctx, s, from)[0].Value.Following
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, options{MaxFollowing: max(1, now+room), Inverse: o.Inverse})
}

// reportsDeadlocks returns errors for races that were lost.
type reportsDeadlocks struct {
	*oracle.Store
	writing *sync.Mutex
}

func (s reportsDeadlocks) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	if !s.writing.TryLock() {
		results := make(changeds, len(changes))
		for i := range results {
			results[i].Err = errors.New("deadlock found when trying to get lock")
		}
		return results
	}
	defer s.writing.Unlock()
	time.Sleep(100 * time.Microsecond) // as long as two statements
	return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
}

// staleRows judges by rows that it read before the lock: two writers of the same change both
// write it.
type staleRows struct{ *oracle.Store }

func (s staleRows) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side != storage.Forward {
		return s.Store.ChangeEdges(ctx, side, from, changes, o)
	}
	if len(changes) != 1 {
		return s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}
	pair := storage.Pair{From: from, To: changes[0].To}
	before := storage.EdgeLookups[storage.Forward].Read(ctx, s, pair)[0].Value
	time.Sleep(300 * time.Microsecond)
	results := s.Store.ChangeEdges(ctx, storage.Forward, from, changes, o)
	if changed := &results[0].Value; !changed.Changed && before.Type != changes[0].Type && results[0].Err == nil {
		changed.Row.UpdateTime++
		changed.Changed = s.Apply(ctx, storage.Forward, []storage.Edge{changed.Row}, storage.IfNewer)[0].Value.Changed
	}
	return results
}
