package replication

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/metrics"
	"kith/storage/sleep"
)

// Synchronous is the redundancy mode `sync`: the writer of a forward row writes the inverse row
// as well, in the same request, and in the same transaction if both are in one database. (Seeds:
// "好友中心" §7, redundancy by the service itself.) What follows from a row on its other side is
// propagated in the same request.
//
// If the second write fails, the first does not fail. The failure is counted, and the write is
// retried in the background for a while; after that it is left to reconcile.
type Synchronous struct {
	propagator Propagator
	logger     *slog.Logger

	failed, repaired, dropped prometheus.Counter

	retries chan []storage.Written
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Bounds on the writes that wait for a retry. Writes beyond them are left to reconcile.
const (
	maxRetries   = 1000 // writes
	firstRetry   = 200 * time.Millisecond
	longestRetry = 30 * time.Second
	tries        = 10
	retriers     = 16 // writes being retried at once
)

// NewSynchronous starts the background retries, which end with Close.
func NewSynchronous(store storage.EdgeWriter, publisher Publisher, registerer prometheus.Registerer, logger *slog.Logger) *Synchronous {
	ctx, stop := context.WithCancel(context.Background())
	made := metrics.In(registerer)
	r := &Synchronous{
		propagator: Propagator{Store: store, Publisher: publisher, Logger: logger}, logger: logger,
		failed:   made.Counter("kith_sync_inverse_failed_total", "Edges whose inverse row could not be written in the request (redundancy sync)."),
		repaired: made.Counter("kith_sync_inverse_repaired_total", "Edges whose inverse row could not be written in the request but was written by a retry (redundancy sync)."),
		dropped:  made.Counter("kith_sync_inverse_dropped_total", "Edges whose inverse row was given up and is left to kith reconcile (redundancy sync)."),
		retries:  make(chan []storage.Written, maxRetries), stop: stop,
	}
	for range retriers {
		r.done.Go(func() { r.retry(ctx) })
	}
	return r
}

// Close ends the background retries. Writes that still wait are left to reconcile.
func (r *Synchronous) Close() {
	r.stop()
	r.done.Wait()
}

// Inline implements [social.Redundancy].
func (r *Synchronous) Inline() bool { return true }

// Propagate implements [social.Redundancy].
func (r *Synchronous) Propagate(ctx context.Context, written []storage.Written) error {
	failed, err := r.try(ctx, written)
	if len(failed) == 0 {
		return nil
	}
	r.failed.Add(float64(len(failed)))
	select {
	case r.retries <- failed:
		r.logger.WarnContext(ctx, "cannot write the other side of edges: will retry", "edges", len(failed), "error", err)
	default:
		r.drop(ctx, failed, err)
	}
	return err
}

// drop leaves rows to reconcile.
func (r *Synchronous) drop(ctx context.Context, rows []storage.Written, err error) {
	r.dropped.Add(float64(len(rows)))
	r.logger.WarnContext(ctx, "cannot write the other side of edges: left to kith reconcile", "edges", len(rows), "error", err)
}

// try propagates rows. It returns those rows, and those that follow from them, that could not be
// written, each once.
func (r *Synchronous) try(ctx context.Context, rows []storage.Written) (failed []storage.Written, err error) {
	seen := map[storage.Row]bool{}
	for _, left := range r.propagator.Propagate(ctx, rows) {
		if !seen[left.Row] {
			seen[left.Row] = true
			failed = append(failed, storage.Written{Row: left.Row})
		}
		err = left.Err
	}
	return failed, err
}

func (r *Synchronous) retry(ctx context.Context) {
	for {
		select {
		case rows := <-r.retries:
			r.applyUntilDone(ctx, rows)
		case <-ctx.Done():
			if len(r.retries) == 0 {
				return
			}
		}
	}
}

// applyUntilDone retries rows again and again. Once the context has ended, it counts them as dropped. If a row is written but a row that follows from it
// is not, the try has failed, too.
func (r *Synchronous) applyUntilDone(ctx context.Context, rows []storage.Written) {
	pause, err := firstRetry, error(nil)
	for range tries {
		if err = sleep.For(ctx, pause); err != nil {
			break
		}
		waiting := make(map[storage.Row]bool, len(rows))
		for _, w := range rows {
			waiting[w.Row] = true
		}
		var left []storage.Written
		left, err = r.try(ctx, rows)
		for _, w := range left {
			if waiting[w.Row] {
				delete(waiting, w.Row)
			} else {
				r.failed.Inc()
			}
		}
		r.repaired.Add(float64(len(waiting)))
		if rows = left; len(rows) == 0 {
			return
		}
		pause = min(2*pause, longestRetry)
	}
	r.drop(ctx, rows, err)
}
