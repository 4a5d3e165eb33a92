package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/replication"
	"kith/storage"
)

// TestIncrementalFindsWhatWasLost loses each hundredth of 600 inverse rows.
// See [TestLongIncrementalFindsWhatWasLost].
func TestIncrementalFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	incrementalFindsWhatWasLost(t, 600)
}

// TestLongIncrementalFindsWhatWasLost loses each hundredth of 20,000 inverse rows.
func TestLongIncrementalFindsWhatWasLost(t *testing.T) {
	testenv.Long(t)
	incrementalFindsWhatWasLost(t, 20_000)
}

func incrementalFindsWhatWasLost(t *testing.T, writes int) {
	onEach(t, func(t *testing.T, w *watched) {
		r := w.incremental(t, nil)
		must.That(t, len(r.Begun) == len(w.logs), "the first run: %+v", r)
		lost := w.writeSome(t, newRand(t), writes)
		w.arrived(t, len(lost))
		t.Logf("%d of %d writes are lost on the inverse side", len(lost), writes)

		var found []reconcile.Finding
		for range 2 { // differences that are only reported are reported again
			found = nil
			r := w.incremental(t, func(cfg *reconcile.ChangesConfig) {
				dryRun(cfg)
				cfg.Found = func(f reconcile.Finding) { found = append(found, f) }
			})
			must.That(t, r.Left() == len(lost) && len(r.Begun) == 0, "%+v, %d were lost", r, len(lost))
		}
		missing := map[reconcile.Key]bool{}
		for _, f := range found {
			missing[f.Key()] = f.Kind == reconcile.Missing
		}
		for _, row := range lost {
			check.That(t, missing[reconcile.Key{Side: row.Side, Pair: row.Edge.Pair()}], "%v is not found missing", row)
		}
		r = w.incremental(t, nil)
		check.That(t, r.Repaired[reconcile.Missing] == len(lost) && r.Left() == 0, "%+v, %d were lost", r, len(lost))
		check.Equal(t, "what differs", w.differences(t), nil)
		r = w.incremental(t, nil)
		check.That(t, len(r.Found) == 0 && r.Rows <= len(lost), "afterwards: %+v", r)
	})
}

// TestWhatIsBeingRepairedIsNotLeft: the status of a mode is read at any moment, and an alert fires at once for what was found and not repaired.
func TestWhatIsBeingRepairedIsNotLeft(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.incremental(t, nil)
	w.follow(t, 1, 1000, true)
	metrics := reconcile.NewMetrics(nil)
	left := func() int {
		s := metrics.Status(reconcile.ModeIncremental, time.Now())
		return s.Found[reconcile.Missing] - s.Repaired[reconcile.Missing]
	}
	before := 0
	w.incremental(t, func(cfg *reconcile.ChangesConfig) {
		cfg.Metrics = metrics
		cfg.Found = func(reconcile.Finding) { before = left() }
	})
	must.Most(t, "what is left before the repair", before, 0)
	must.Equal(t, "what is left", left(), 0)
	must.Equal(t, "what was found", metrics.Status(reconcile.ModeIncremental, time.Now()).Found[reconcile.Missing], 1)
}

func TestIncrementalFindsEveryKind(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.incremental(t, nil)
	e := w.follow(t, 1, 1000, false)
	damage := map[storage.Pair]storage.Edge{ // the values that the inverse row is changed to
		{From: 1, To: 1001}: {Type: storage.Blocking, UpdateTime: e.UpdateTime + 5_000_000},
		{From: 1, To: 1002}: {Type: storage.Following, UpdateTime: e.UpdateTime + 5_000_000},
		{From: 7, To: 1003}: {Type: storage.Following, UpdateTime: e.UpdateTime},
	}
	w.follow(t, 1, 1001, false)
	w.follow(t, 1, 1002, false)
	for p, row := range damage {
		row.From, row.To = p.From, p.To
		applied(t, w.Store, storage.Inverse, []storage.Edge{row})
	}
	r := w.incremental(t, nil)
	for _, kind := range []reconcile.Kind{reconcile.WrongType, reconcile.WrongTime, reconcile.Extra} {
		check.That(t, r.Found[kind] == 1 && r.Repaired[kind] == 1, "%s: %+v", kind, r)
	}
	check.Equal(t, "what differs", w.differences(t), nil)
}

func TestIncrementalReportsThatChangesAreLost(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.incremental(t, nil)
	w.writeSome(t, newRand(t), 200)
	for shard := range w.Shards() {
		last, err := w.LastOfLog(t.Context(), shard)
		must.OK(t, err)
		must.OK(t, w.PruneLog(t.Context(), shard, last-10))
	}
	for range 2 { // until the run has looked at it
		r, err := reconcile.Incremental(t.Context(), w.config(nil))
		must.That(t, errors.Is(err, replication.ErrLost), "%+v, %v", r, err)
	}
	keep, err := reconcile.Mark(t.Context(), w.logs, w.Store)
	must.OK(t, err)
	e := w.follow(t, 1, 5, true) // while a full scan runs
	must.OK(t, keep(t.Context()))
	r := w.incremental(t, nil)
	check.That(t, r.Repaired[reconcile.Missing] == 1, "%v was lost behind the mark: %+v", e, r)
}

// oneByOne is a log that passes each row alone.
type oneByOne struct{ replication.Log }

func (l oneByOne) Read(ctx context.Context, store storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	return l.Log.Read(ctx, store, after, upTo, func(c replication.Changed) error {
		for _, row := range c.Rows {
			c.Rows = []storage.Row{row}
			if err := take(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestIncrementalEndsHoweverMuchIsLeft: what was found and is not repaired takes no room from what is read behind it.
func TestIncrementalEndsHoweverMuchIsLeft(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.incremental(t, nil)
	const lost = 250
	for to := range storage.UserID(lost) {
		w.follow(t, 1, 1000+to, true)
	}
	for i, l := range w.logs {
		w.logs[i] = oneByOne{l}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := reconcile.Incremental(ctx, w.config(func(cfg *reconcile.ChangesConfig) {
		dryRun(cfg)
		cfg.Window, cfg.MaxPending = time.Millisecond, 1
	}))
	check.That(t, err == nil && r.Left() == lost, "%+v, %v; %d were lost", r, err, lost)
}

func TestIncrementalKilledSkipsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *watched) {
		random := newRand(t)
		w.incremental(t, nil)
		var found int
		cut := func(ctx context.Context) (reconcile.IncrementalReport, error) {
			return reconcile.Incremental(ctx, w.config(func(cfg *reconcile.ChangesConfig) {
				cfg.MaxPending, cfg.Window = 40, window/10
				cfg.Found = func(reconcile.Finding) { found++ }
			}))
		}
		for range 5 {
			w.writeSome(t, random, 150)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(150))*time.Millisecond)
			_, _ = cut(ctx) // killed at some point
			cancel()
		}
		w.mu.Lock()
		left := len(w.lose)
		w.mu.Unlock()
		if left > 0 { // replication has not applied all of them yet
			must.OKSoon(t, func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.lose) > 0 {
					return errors.New("the inverse side lags")
				}
				return nil
			})
		}
		must.OKSoon(t, func() error { // rows that lag are found, too, and are repaired by hand
			_, err := cut(t.Context())
			return err
		})
		must.OKSoon(t, func() error {
			if left := w.differences(t); len(left) > 0 {
				return errors.New(left[0].String())
			}
			return nil
		})
	})
}
