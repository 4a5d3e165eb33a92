package rediscache

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/sleep"
)

// slowly is a Redis that takes its time for each command.
type slowly struct{ afterPipelines }

func (*slowly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if err := sleep.For(ctx, time.Duration(len(commands))*120*time.Microsecond); err != nil {
			return err
		}
		return next(ctx, commands)
	}
}

// Users who have changed are reported however many they are, also to a Redis that takes longer for all of them than a report may.
func TestManyChangesCanBeReported(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	_, a, b := pair(t, s)
	a.timeout = 500 * time.Millisecond
	b.agrees(t, s, 1, 2)
	b.idle(t)
	s.write(t, 1, 2, storage.Following)
	what := s.both(1, 2)
	for len(what) < mostLate {
		what = append(what, storage.UserChange{User: storage.UserID(len(what) + 1), What: storage.Missed})
	}
	a.epoch(t)
	a.clock.Redis.AddHook(&slowly{})
	a.Changed(t.Context(), what)
	must.Soon(t, "all have been reported", func() bool { return !a.Behind() })
	b.agrees(t, s, 1, 2)
}
