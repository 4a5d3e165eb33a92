package sqlstore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage/sqlstore/internal/move"
)

// A mover waits until every program that looks once a second has noticed the move and looks ten times a second.
func TestAMoveIsLookedAtMoreOften(t *testing.T) {
	location := twoFiles(t)
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		s := openSmall(t, location, func(_ context.Context, st Statement) {
			if st.Lookup == "buckets" && st.Shard == 1 {
				looks.Add(1)
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { s.Watch(ctx) })
		in := func(d time.Duration) int64 {
			before := looks.Load()
			time.Sleep(d)
			synctest.Wait()
			return looks.Load() - before
		}
		in(move.LookEvery / 2)
		check.Equal(t, "looks in 10 s", in(10*time.Second), 10)
		_, err := s.db.Shard(1).Write.ExecContext(t.Context(), "UPDATE kith_buckets SET state = 1; UPDATE kith_epoch SET epoch = epoch + 1")
		must.OK(t, err)
		check.Equal(t, "looks from the beginning of a move until the mover goes on", in(move.LookEvery+move.LookEveryMoving), 7)
		check.Equal(t, "looks in the next second", in(time.Second), 10)
		stop()
		watching.Wait()
	})
}
