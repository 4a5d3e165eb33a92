package storagetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

type changesRaise struct{ *counting }

func (s changesRaise) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if side == storage.Forward {
		s.add(from, 1)
	}
	return s.Store.ChangeEdges(ctx, side, from, changes, o)
}

// reportsDeadlocks returns errors for races that were lost.
func reportsDeadlocks(s *oracle.Store) storage.Store {
	var writing sync.Mutex
	return spoiled(s, follows(func(ctx context.Context, s *oracle.Store, from storage.UserID, changes edgeChanges, o options) changeds {
		if !writing.TryLock() {
			return storage.Each(changes, func(storage.EdgeChange) (r storage.Result[storage.Changed]) {
				r.Err = errors.New("deadlock found when trying to get lock")
				return r
			})
		}
		defer writing.Unlock()
		time.Sleep(100 * time.Microsecond) // as long as two statements
		return s.ChangeEdges(ctx, storage.Forward, from, changes, o)
	}))
}
