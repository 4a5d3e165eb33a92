package rediscache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/internal/sleep"
	"kith/storage"
)

// flight is one look-up of one key, for all callers of this process who want it meanwhile.
type flight[Q comparable, V any] struct {
	query  Q
	begun  time.Time
	done   chan struct{}
	result storage.Result[V]
}

const (
	// joinable is how old a flight may be for others to join it: its answer may be as old.
	joinable    = 50 * time.Millisecond
	nobodyJoins = time.Duration(-1)
)

// flights are those under way of one kind, by owner.
type flights[Q comparable, V any] struct {
	kind[Q, V]
	within  time.Duration // how old one may be for others to join it
	mu      sync.Mutex
	byOwner map[storage.UserID]*flight[Q, V]
}

func newFlights[Q comparable, V any](k kind[Q, V]) *flights[Q, V] {
	return &flights[Q, V]{kind: k, within: joinable, byOwner: map[storage.UserID]*flight[Q, V]{}}
}

// board finds a flight for each query. Those that have to be begun are returned besides.
func (fs *flights[Q, V]) board(queries []Q, now time.Time) (all, begun []*flight[Q, V]) {
	all = make([]*flight[Q, V], len(queries))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i, q := range queries {
		owner := fs.owner(q)
		f := fs.byOwner[owner]
		if f == nil || !fs.answers(f.query, q) || now.Sub(f.begun) > fs.within {
			f = &flight[Q, V]{query: q, begun: now, done: make(chan struct{})}
			fs.byOwner[owner] = f
			begun = append(begun, f)
		}
		all[i] = f
	}
	return all, begun
}

// land ends a flight. Whoever comes after that begins another one.
func (fs *flights[Q, V]) land(f *flight[Q, V], r storage.Result[V]) {
	fs.mu.Lock()
	if owner := fs.owner(f.query); fs.byOwner[owner] == f {
		delete(fs.byOwner, owner)
	}
	fs.mu.Unlock()
	f.result = r
	close(f.done)
}

// forget lets nobody join the flights of some users any more.
func (fs *flights[Q, V]) forget(owners []storage.UserID) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, owner := range owners {
		delete(fs.byOwner, owner)
	}
}

// lookUp answers each query at its index. What it begins goes on when the caller has left,
// for others may wait for it.
func lookUp[Q comparable, V any](ctx context.Context, c *Cache, fs *flights[Q, V], queries []Q) []storage.Result[V] {
	results := make([]storage.Result[V], len(queries))
	if err := ctx.Err(); err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	all, begun := fs.board(queries, c.cfg.Now())
	if len(begun) > 0 {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.FillTimeout)
			defer cancel()
			fetch(ctx, c, fs, begun)
		}()
	}
	for i, f := range all {
		select {
		case <-f.done:
			results[i] = f.result
			if f.result.Err == nil {
				results[i].Value = fs.narrow(f.result.Value, queries[i])
			}
		case <-ctx.Done():
			results[i].Err = fmt.Errorf("wait for %s of user %d: %w", fs.name(), fs.owner(queries[i]), ctx.Err())
		}
	}
	return results
}

// pauses are how long is waited for what another gateway is filling, before the store is
// asked all the same: 50 ms in all.
var pauses = []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond}

// fetch ends all flights: from Redis, or from the store and into Redis, or from the store alone.
func fetch[Q comparable, V any](ctx context.Context, c *Cache, fs *flights[Q, V], begun []*flight[Q, V]) {
	left := begun
	visit := c.enter(ctx)
	if visit == nil {
		c.cfg.Metrics.looked(fs.name(), "skipped", len(left))
	} else {
		got := get(ctx, visit, fs, left)
		if len(got.leased) > 0 {
			fill(ctx, visit, fs, got.leased)
		}
		for _, pause := range pauses {
			if len(got.busy) == 0 || sleep.For(ctx, pause) != nil {
				break
			}
			c.cfg.Metrics.waits.WithLabelValues(fs.name()).Add(float64(len(got.busy)))
			again := get(ctx, visit, fs, got.busy)
			if len(again.leased) > 0 {
				fill(ctx, visit, fs, again.leased)
			}
			got.busy, got.failed = again.busy, append(got.failed, again.failed...)
		}
		c.cfg.Metrics.looked(fs.name(), "busy", len(got.busy))
		c.cfg.Metrics.looked(fs.name(), "failed", len(got.failed))
		left = slices.Concat(got.busy, got.failed)
	}
	if len(left) > 0 {
		for i, r := range readSource(ctx, c, fs, left) {
			fs.land(left[i], r)
		}
	}
}

// readSource asks the store, when it is its turn.
func readSource[Q comparable, V any](ctx context.Context, c *Cache, fs *flights[Q, V], some []*flight[Q, V]) []storage.Result[V] {
	if err := c.source.Acquire(ctx, 1); err != nil {
		results := make([]storage.Result[V], len(some))
		for i, f := range some {
			results[i].Err = fmt.Errorf("wait to read %s of user %d: %w", fs.name(), fs.owner(f.query), err)
		}
		return results
	}
	defer c.source.Release(1)
	queries := make([]Q, len(some))
	for i, f := range some {
		queries[i] = fs.widen(f.query)
	}
	return fs.read(ctx, c.cfg.Source, queries)
}
