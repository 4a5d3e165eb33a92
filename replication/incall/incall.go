// Package incall is the redundancy mode `sync`: whoever writes a forward row writes
// the inverse row as well, in the same request, and in the same transaction where
// both lie in one database. (Seeds: "好友中心" §7, redundancy by the service itself.)
//
// A second write that fails does not fail the first. It is counted, tried again in
// the background for a while, and after that left to reconcile.
package incall

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
)

// Publisher is told of rows that are on both sides.
type Publisher interface {
	Publish(ctx context.Context, rows []storage.Edge)
}

// Redundancy carries rows to the inverse side in the call.
type Redundancy struct {
	store     storage.EdgeWriter
	publisher Publisher
	logger    *slog.Logger
	metrics   *Metrics

	retries chan []storage.Edge
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Bounds on what waits for another try. What does not fit is left to reconcile.
const (
	maxRetries   = 1000 // writes
	firstRetry   = 200 * time.Millisecond
	longestRetry = 30 * time.Second
	tries        = 10
	retriers     = 16 // writes that are tried again at once
)

// Metrics counts what went wrong.
type Metrics struct {
	failed  prometheus.Counter
	mended  prometheus.Counter
	dropped prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		failed:  counter("kith_sync_inverse_failed_total", "Edges whose inverse row could not be written in the request (redundancy sync)."),
		mended:  counter("kith_sync_inverse_mended_total", "Of those, edges whose inverse row a later try has written."),
		dropped: counter("kith_sync_inverse_dropped_total", "Of those, edges that are left to reconcile."),
	}
	registerer.MustRegister(m.failed, m.mended, m.dropped)
	return m
}

// New starts the background tries, which end with Close.
func New(store storage.EdgeWriter, publisher Publisher, metrics *Metrics, logger *slog.Logger) *Redundancy {
	ctx, stop := context.WithCancel(context.Background())
	r := &Redundancy{store: store, publisher: publisher, logger: logger, metrics: metrics, stop: stop,
		retries: make(chan []storage.Edge, maxRetries)}
	for range retriers {
		r.done.Go(func() { r.retry(ctx) })
	}
	return r
}

// Close ends the background tries. What still waits is left to reconcile.
func (r *Redundancy) Close() {
	r.stop()
	r.done.Wait()
}

// Inline implements [social.Redundancy].
func (r *Redundancy) Inline() bool { return true }

// Carry implements [social.Redundancy].
func (r *Redundancy) Carry(ctx context.Context, written []storage.Changed) error {
	var there, rows []storage.Edge
	for _, w := range written {
		if w.Inverse {
			there = append(there, w.Row)
		} else {
			rows = append(rows, w.Row)
		}
	}
	if len(there) > 0 {
		r.publisher.Publish(ctx, there)
	}
	if len(rows) == 0 {
		return nil
	}
	failed, err := r.apply(ctx, rows)
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

// apply returns the rows that could not be written.
func (r *Redundancy) apply(ctx context.Context, rows []storage.Edge) (failed []storage.Edge, err error) {
	written := make([]storage.Edge, 0, len(rows))
	for i, a := range r.store.Apply(ctx, storage.Inverse, rows, storage.IfNewer) {
		if a.Err != nil {
			failed, err = append(failed, rows[i]), a.Err
			continue
		}
		written = append(written, rows[i])
	}
	if len(written) > 0 {
		r.publisher.Publish(ctx, written)
	}
	return failed, err
}

func (r *Redundancy) retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			r.leave()
			return
		case rows := <-r.retries:
			left := r.insist(ctx, rows)
			r.metrics.mended.Add(float64(len(rows) - len(left)))
			r.metrics.dropped.Add(float64(len(left)))
		}
	}
}

// leave counts what still waits when the program ends.
func (r *Redundancy) leave() {
	for {
		select {
		case rows := <-r.retries:
			r.metrics.dropped.Add(float64(len(rows)))
		default:
			return
		}
	}
}

// insist tries rows again and again, and returns what it could not write.
func (r *Redundancy) insist(ctx context.Context, rows []storage.Edge) []storage.Edge {
	pause := firstRetry
	for range tries {
		select {
		case <-ctx.Done():
			return rows
		case <-time.After(pause):
		}
		if rows, _ = r.apply(ctx, rows); len(rows) == 0 {
			return nil
		}
		pause = min(2*pause, longestRetry)
	}
	return rows
}
