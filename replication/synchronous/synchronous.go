// Package synchronous is the redundancy mode `sync`: the writer of a forward row writes the inverse row
// as well, in the same request, and in the same transaction if both are in one database. (Seeds:
// "好友中心" §7, redundancy by the service itself.) What follows from a row on its other side is
// propagated in the same request.
//
// If the second write fails, the first does not fail. The failure is counted, and the write is
// retried in the background for a while; after that it is left to reconcile.
package synchronous

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/replication"
	"kith/storage"
	"kith/storage/sleep"
)

// Redundancy propagates rows to the inverse side in the call.
type Redundancy struct {
	propagator replication.Propagator
	logger     *slog.Logger
	metrics    *Metrics

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

// Metrics counts failures.
type Metrics struct {
	failed   prometheus.Counter
	repaired prometheus.Counter
	dropped  prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		failed:   counter("kith_sync_inverse_failed_total", "Edges whose inverse row could not be written in the request (redundancy sync)."),
		repaired: counter("kith_sync_inverse_repaired_total", "Of those, edges whose inverse row a later try has written."),
		dropped:  counter("kith_sync_inverse_dropped_total", "Of those, edges that are left to reconcile."),
	}
	registerer.MustRegister(m.failed, m.repaired, m.dropped)
	return m
}

// New starts the background retries, which end with Close.
func New(store storage.EdgeWriter, publisher replication.Publisher, metrics *Metrics, logger *slog.Logger) *Redundancy {
	ctx, stop := context.WithCancel(context.Background())
	r := &Redundancy{propagator: replication.Propagator{Store: store, Publisher: publisher, Logger: logger}, logger: logger, metrics: metrics, stop: stop,
		retries: make(chan []storage.Written, maxRetries)}
	for range retriers {
		r.done.Go(func() { r.retry(ctx) })
	}
	return r
}

// Close ends the background retries. Writes that still wait are left to reconcile.
func (r *Redundancy) Close() {
	r.stop()
	r.done.Wait()
}

// Inline implements [social.Redundancy].
func (r *Redundancy) Inline() bool { return true }

// Propagate implements [social.Redundancy].
func (r *Redundancy) Propagate(ctx context.Context, written []storage.Written) error {
	failed, err := r.try(ctx, written)
	if len(failed) == 0 {
		return nil
	}
	r.metrics.failed.Add(float64(len(failed)))
	r.logger.WarnContext(ctx, "inverse rows not written", "edges", len(failed), "error", err)
	select {
	case r.retries <- failed:
	default:
		r.metrics.dropped.Add(float64(len(failed)))
	}
	return err
}

// try propagates rows. It returns those rows, and those that follow from them, that could not be
// written, each once.
func (r *Redundancy) try(ctx context.Context, rows []storage.Written) (failed []storage.Written, err error) {
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

func (r *Redundancy) retry(ctx context.Context) {
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
func (r *Redundancy) applyUntilDone(ctx context.Context, rows []storage.Written) {
	pause := firstRetry
	for range tries {
		if sleep.For(ctx, pause) != nil {
			break
		}
		waiting := make(map[storage.Row]bool, len(rows))
		for _, w := range rows {
			waiting[w.Row] = true
		}
		left, _ := r.try(ctx, rows)
		for _, w := range left {
			if waiting[w.Row] {
				delete(waiting, w.Row)
			} else {
				r.metrics.failed.Inc()
			}
		}
		r.metrics.repaired.Add(float64(len(waiting)))
		if rows = left; len(rows) == 0 {
			return
		}
		pause = min(2*pause, longestRetry)
	}
	r.metrics.dropped.Add(float64(len(rows)))
}
