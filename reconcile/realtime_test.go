package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/storage"
)

// watch runs the realtime mode until the returned function is called.
func (w *watched) watch(t testing.TB, change func(*reconcile.ChangesConfig)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { check.Is(t, "the realtime mode", reconcile.Realtime(ctx, w.config(change)), nil) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// begun makes the present end of the logs the checkpoint of the realtime mode.
func (w *watched) begun(t testing.TB) {
	t.Helper()
	stop := w.watch(t, nil)
	must.OKSoon(t, func() error {
		for _, l := range w.logs {
			if _, found, err := w.LoadCheckpoint(t.Context(), "reconcile/realtime/"+l.Name()); !found || err != nil {
				return fmt.Errorf("%s is not followed yet: %v", l.Title(), err)
			}
		}
		return nil
	})
	stop()
}

// TestRealtimeRepairsWithinTwoWindows loses each hundredth of 500 inverse rows.
// See [TestLongRealtimeRepairsWithinTwoWindows].
func TestRealtimeRepairsWithinTwoWindows(t *testing.T) {
	t.Parallel()
	realtimeRepairsWithinTwoWindows(t, 500)
}

// TestLongRealtimeRepairsWithinTwoWindows loses each hundredth of 20,000 inverse rows.
func TestLongRealtimeRepairsWithinTwoWindows(t *testing.T) {
	testenv.Long(t)
	realtimeRepairsWithinTwoWindows(t, 20_000)
}

func realtimeRepairsWithinTwoWindows(t *testing.T, writes int) {
	onEach(t, func(t *testing.T, w *watched) {
		w.begun(t)
		const span = 2 * time.Second // a window that a busy machine can meet
		var mu sync.Mutex
		repaired := map[storage.Row]time.Time{}
		w.watch(t, func(cfg *reconcile.ChangesConfig) {
			cfg.Window = span
			cfg.OnRepair = func(_ context.Context, rows []storage.Row) {
				now := time.Now()
				mu.Lock()
				defer mu.Unlock()
				for _, row := range rows {
					repaired[row] = now
				}
			}
		})
		began := time.Now()
		lost := w.writeSome(t, newRand(t), writes)
		took := time.Since(began)
		must.OKSoon(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, row := range lost {
				if repaired[row].IsZero() {
					return fmt.Errorf("%v is not repaired", row)
				}
			}
			return nil
		})
		var after []time.Duration // from the write's time to the repair
		for _, row := range lost {
			// Times of rows are ahead of the clock by at most a microsecond for each write.
			late := repaired[row].Sub(row.Edge.UpdateTime.Time()) + time.Duration(writes)*time.Microsecond
			check.Most(t, fmt.Sprintf("the time until %v was repaired", row), late, 2*span)
			after = append(after, late)
		}
		slices.Sort(after)
		t.Logf("%d of %d writes, at %.0f/s, were lost and repaired: after %v (median), %v at most", len(lost), writes, float64(writes)/took.Seconds(),
			after[len(after)/2].Round(time.Millisecond), after[len(after)-1].Round(time.Millisecond))
		w.arrived(t, 0)
	})
}

func TestRealtimeOnlyReportsIfItIsNotToRepair(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.begun(t)
	found := make(chan reconcile.Finding, 10)
	w.watch(t, func(cfg *reconcile.ChangesConfig) {
		dryRun(cfg)
		cfg.Found = func(f reconcile.Finding) { found <- f }
	})
	e := w.follow(t, 1, 2000, true)
	select {
	case f := <-found:
		check.That(t, f.Kind == reconcile.Missing && f.Pair() == e.Pair(), "%v", f)
	case <-time.After(time.Minute):
		t.Fatal("nothing is found")
	}
	w.arrived(t, 1)
}

func TestRealtimeKilledSkipsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *watched) {
		random := newRand(t)
		w.begun(t)
		long := func(cfg *reconcile.ChangesConfig) { cfg.Window = time.Second } // so that many rows are unpaired
		for range 3 {
			stop := w.watch(t, long)
			end := time.Now().Add(500*time.Millisecond + time.Duration(random.IntN(600))*time.Millisecond)
			for i := 0; time.Now().Before(end); i++ {
				w.follow(t, storage.UserID(random.IntN(50)+1), 1000+storage.UserID(w.clock.Load()), i%10 == 5)
				time.Sleep(5 * time.Millisecond) // a rate, not a wait
			}
			stop()
		}
		w.watch(t, nil)
		w.arrived(t, 0)
	})
}

// TestRealtimeWaitsForRoom: what does not fit into memory is read later.
func TestRealtimeWaitsForRoom(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.begun(t)
	const writes, room, atOnce = 3000, 10, 1000 // a relation_log passes 1,000 rows at once
	for to := range storage.UserID(writes) {
		w.follow(t, 1+to%100, 1000+to, true)
	}
	var most, repaired atomic.Int64
	w.watch(t, func(cfg *reconcile.ChangesConfig) {
		cfg.MaxPending = room
		cfg.OnRepair = func(_ context.Context, rows []storage.Row) {
			most.Store(max(most.Load(), int64(len(rows))))
			repaired.Add(int64(len(rows)))
		}
	})
	must.Soon(t, "all are repaired", func() bool { return repaired.Load() >= writes })
	check.Most(t, "edges in memory", most.Load(), room+atOnce*int64(w.Shards()))
	w.arrived(t, 0)
}

func TestRealtimeGoesOnWhereChangesAreLost(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.begun(t)
	w.writeSome(t, newRand(t), 200)
	for shard := range w.Shards() {
		must.OK(t, w.PruneLog(t.Context(), shard, 1<<40))
	}
	w.watch(t, nil)
	must.OKSoon(t, func() error { // before it has started over, it misses rows that are written
		e := w.follow(t, 1, storage.UserID(9000+w.clock.Add(1)), true)
		for deadline := time.Now().Add(5 * window); time.Now().Before(deadline); time.Sleep(window / 10) {
			if row := storage.EdgeLookups[storage.Inverse].Read(t.Context(), w, e.Pair())[0]; row.Err == nil && row.Value == e {
				return nil
			}
		}
		return errors.New("nothing is repaired")
	})
}
