package rediscache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// lookUp is one call of [Cache.Profiles], [Cache.Lists] or [Cache.Posts]. One goroutine answers its queries. It
// continues after the caller has left, and while results that the caller already has are being
// stored. It does not join concurrent callers for the same key: the cache in the process does that.
type lookUp[Q comparable, V any] struct {
	cache   *Cache
	kind    kind[Q, V]
	queries []Q
	results []storage.Result[V] // at the index of the query
	left    int                 // queries that have no result yet
	done    chan struct{}       // closed when none is left
}

// look answers each query at its index.
func look[Q comparable, V any](ctx context.Context, c *Cache, k kind[Q, V], queries []Q) []storage.Result[V] {
	if err := ctx.Err(); err != nil || len(queries) == 0 {
		return failures[V](len(queries), err)
	}
	l := &lookUp[Q, V]{c, k, slices.Clone(queries), make([]storage.Result[V], len(queries)), len(queries), make(chan struct{})}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FillTimeout)
		defer cancel()
		l.run(ctx)
	}()
	select {
	case <-l.done:
		return l.results
	case <-ctx.Done():
		return failures[V](len(queries), fmt.Errorf("wait for %s: %w", k.name(), ctx.Err()))
	}
}

// failures are n results with one error.
func failures[V any](n int, err error) []storage.Result[V] {
	return slices.Repeat([]storage.Result[V]{{Err: err}}, n)
}

// answer sets the result of the query at an index.
func (l *lookUp[Q, V]) answer(i int, r storage.Result[V]) {
	if r.Err == nil {
		r.Value = l.kind.narrow(r.Value, l.queries[i])
	}
	l.results[i] = r
	if l.left--; l.left == 0 {
		close(l.done)
	}
}

// pauses are the waits for values that another look-up is filling, before the store is asked all
// the same: 50 ms in all.
var pauses = []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond}

// run answers all queries: from Redis, or from the store and into Redis, or from the store alone.
func (l *lookUp[Q, V]) run(ctx context.Context) {
	metrics, name := l.cache.cfg.Metrics, l.kind.name()
	left := make([]int, len(l.queries))
	for i := range left {
		left[i] = i
	}
	visit := l.cache.enter(ctx)
	if visit == nil {
		metrics.looked(name, "skipped", len(left))
	} else {
		got := l.get(ctx, visit, left)
		l.fill(ctx, visit, got.leased)
		for _, pause := range pauses {
			if len(got.busy) == 0 || sleep.For(ctx, pause) != nil {
				break
			}
			metrics.waits.WithLabelValues(name).Add(float64(len(got.busy)))
			again := l.get(ctx, visit, got.busy)
			l.fill(ctx, visit, again.leased)
			got.busy, got.failed = again.busy, append(got.failed, again.failed...)
		}
		metrics.looked(name, "busy", len(got.busy))
		metrics.looked(name, "failed", len(got.failed))
		left = slices.Concat(got.busy, got.failed)
	}
	if len(left) > 0 {
		for n, r := range l.readSource(ctx, left) {
			l.answer(left[n], r)
		}
	}
}

// readSource asks the store for the queries at some indices, once one of the slots for that is
// free.
func (l *lookUp[Q, V]) readSource(ctx context.Context, some []int) []storage.Result[V] {
	if err := l.cache.source.Acquire(ctx, 1); err != nil {
		return failures[V](len(some), fmt.Errorf("wait to read %s: %w", l.kind.name(), err))
	}
	defer l.cache.source.Release(1)
	queries := make([]Q, len(some))
	for n, i := range some {
		queries[n] = l.kind.widen(l.queries[i])
	}
	return l.kind.read(ctx, l.cache.cfg.Source, queries)
}
