package consistency

import (
	"context"
	"time"

	"kith/storage"
)

// Wait returns once the inverse row of every mark is at least at its version, or
// when the time is over, or when a shard does not answer. It tells whether all of
// them are.
func Wait(ctx context.Context, store storage.EdgeReader, t Token, atMost time.Duration) (fresh bool) {
	if len(t) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	pause := time.Millisecond
	for {
		var answered bool
		if t, answered = behind(ctx, store, t); len(t) == 0 || !answered {
			return answered
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

// behind returns the marks whose inverse rows are not there yet, and whether all
// shards answered.
func behind(ctx context.Context, store storage.EdgeReader, t Token) (late Token, answered bool) {
	for _, side := range [...]storage.Side{storage.Forward, storage.Requests} {
		var marks Token
		var pairs []storage.Pair
		for _, m := range t {
			if m.Side.Truth() == side {
				marks, pairs = append(marks, m), append(pairs, m.Pair)
			}
		}
		if len(marks) == 0 {
			continue
		}
		for i, r := range store.Edges(ctx, side.Replica(), pairs) {
			if r.Err != nil {
				return t, false
			}
			if r.Value.UpdateTime < marks[i].Version {
				late = append(late, marks[i])
			}
		}
	}
	return late, true
}
