package reconcile_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
)

// eventful is a store that runs a function whenever inverse rows have been read.
type eventful struct {
	*oracle.Store
	readings int
	then     func(reading int)
}

func (e *eventful) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	rows := storage.EdgeLookups[side].Read(ctx, e.Store, pairs...)
	if side == storage.Inverse {
		e.readings++
		e.then(e.readings)
	}
	return rows
}

func (e *eventful) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, e.edges)
	e.Store.Bundle(ctx, b)
}

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
			e := &eventful{Store: oracle.New()}
			e.then = func(reading int) { tt.then(e.Store, reading) }
			e.Apply(t.Context(), storage.Forward, []storage.Edge{edgeAt(storage.Following, 5)}, storage.IfNewer)
			found, unsettled, err := reconcile.Confirm(t.Context(), e, one, time.Millisecond)
			if len(found) != tt.found || unsettled != tt.unsettled || err != nil {
				t.Errorf("%+v, %d, %v", found, unsettled, err)
			}
		})
	}
}
