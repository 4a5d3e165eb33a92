package reconcile_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
)

func TestConfirm(t *testing.T) {
	for name, tt := range map[string]struct {
		then      func(*oracle.Store, int)
		found     int
		unsettled int
	}{
		"a row that stays away": {func(*oracle.Store, int) {}, 1, 0},
		"a row that arrives within the window": {func(s *oracle.Store, reading int) {
			if reading == 1 {
				s.Apply(context.Background(), storage.Inverse, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
			}
		}, 0, 0},
		// Each new forward row is read before its inverse row exists.
		"an edge that is written all the time": {func(s *oracle.Store, reading int) {
			for side, at := range []int{5 + reading, 4 + reading} {
				s.Apply(context.Background(), storage.Side(side), []storage.Edge{edgeAt(storage.Following, storage.Micros(at))}, storage.IfNewer)
			}
		}, 0, 1},
		"an edge that is written all the time and never arrives": {func(s *oracle.Store, reading int) {
			s.Apply(context.Background(), storage.Forward, []storage.Edge{edgeAt(storage.Following, storage.Micros(5+reading))}, storage.IfNewer)
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store, readings := double.Of(oracle.New()), 0
			double.After(store, func(side storage.Side, _ []storage.Pair, _ []storage.Result[storage.Edge]) {
				if side == storage.Inverse {
					readings++
					tt.then(store.Store, readings)
				}
			}, storage.EdgeLookups...)
			store.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
			found, unsettled, err := reconcile.Confirm(t.Context(), store, one, time.Millisecond)
			check.That(t, len(found) == tt.found && unsettled == tt.unsettled && err == nil, "%+v, %d, %v", found, unsettled, err)
		})
	}
}
