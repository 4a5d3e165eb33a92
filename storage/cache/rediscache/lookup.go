package rediscache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/sleep"
)

// lookUp is one call of [Cache.Profiles] or [Cache.Lists], under one epoch. It does not join concurrent callers for the
// same key, and ends with its caller: the cache in the process joins callers, and reads on behalf of all of them.
type lookUp[Q comparable, V any] struct {
	cache   *Cache
	kind    kind[Q, V]
	queries []Q
	results []storage.Result[V] // at the index of the query
	epoch   *epoch
	token   string // of the leases that it takes
}

// look answers each query at its index: from Redis, or from the store and into Redis, or from the store alone.
func look[Q comparable, V any](ctx context.Context, c *Cache, k kind[Q, V], queries []Q) []storage.Result[V] {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	l := &lookUp[Q, V]{cache: c, kind: k, queries: queries, results: make([]storage.Result[V], len(queries))}
	left := storage.Indexes(len(queries))
	if l.epoch = c.enter(ctx); l.epoch == nil {
		c.cfg.Metrics.looked(k.name(), "skipped", len(left))
	} else {
		l.token = c.instance + strconv.FormatUint(c.tokens.Add(1), 36)
		left = l.ask(ctx, left)
	}
	for n, r := range l.read(ctx, left) {
		l.results[left[n]] = r
	}
	return l.results
}

// enter returns the epoch under which Redis may be asked, nil if it must not be asked now.
func (c *Cache) enter(ctx context.Context) *epoch {
	if c.late.behind() || !c.breaker.allow() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	e, err := c.currentEpoch(ctx)
	if err != nil {
		c.failed("learn")
		return nil
	}
	return e
}

// pauses are the waits before Redis is asked, and asked again for values that another look-up is filling, until the store is asked all
// the same: 50 ms in all.
var pauses = []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond, 15 * time.Millisecond, 20 * time.Millisecond}

// ask answers queries from Redis, and from the store into Redis. It returns those that are left to the store alone: somebody
// else is filling them for too long, or Redis has not answered.
func (l *lookUp[Q, V]) ask(ctx context.Context, busy []int) (left []int) {
	metrics, name := l.cache.cfg.Metrics, l.kind.name()
	for _, pause := range pauses {
		if len(busy) == 0 || sleep.For(ctx, pause) != nil {
			break
		}
		if pause > 0 {
			metrics.waits.WithLabelValues(name).Add(float64(len(busy)))
		}
		var leased, failed []int
		leased, busy, failed = l.get(ctx, busy)
		left = append(left, failed...)
		l.fill(ctx, leased)
	}
	metrics.looked(name, "busy", len(busy))
	metrics.looked(name, "failed", len(left))
	return append(left, busy...)
}

// get asks Redis for some keys in one round trip, and takes the leases on missing ones in the same
// trip. It returns the indices of queries that Redis did not answer, by reason.
func (l *lookUp[Q, V]) get(ctx context.Context, some []int) (leased, busy, failed []int) {
	c := l.cache
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(some))
	for n, i := range some {
		script, args := l.kind.get(l.queries[i])
		commands[n] = script.EvalSha(ctx, pipe, []string{l.kind.key(l.epoch, l.queries[i])}, append([]any{l.token, c.leaseLife().Milliseconds()}, args...)...)
	}
	verifying := c.verifying(ctx, pipe)
	_ = c.exchange(ctx, "get", pipe) // each command has its own error
	if !c.verify(l.epoch, verifying) {
		return nil, nil, some
	}
	for n, i := range some {
		switch reply, err := commands[n].Result(); {
		case err != nil:
			failed = append(failed, i)
		case reply == int64(1):
			leased = append(leased, i)
		case reply == int64(0):
			busy = append(busy, i)
		case !l.found(ctx, i, reply):
			failed = append(failed, i)
		}
	}
	c.cfg.Metrics.looked(l.kind.name(), "miss", len(leased))
	return leased, busy, failed
}

// found answers a query with what Redis has. If the value cannot be read, it removes the value and
// returns false.
func (l *lookUp[Q, V]) found(ctx context.Context, i int, reply any) bool {
	metrics := l.cache.cfg.Metrics
	result, err := l.kind.parse(reply, l.queries[i])
	if err != nil {
		pipe := l.cache.cfg.Redis.Pipeline()
		pipe.Unlink(ctx, l.kind.key(l.epoch, l.queries[i]))
		_ = l.cache.exchange(ctx, "drop", pipe)
		metrics.errors.WithLabelValues("parse").Inc()
		return false
	}
	outcome := "hit"
	if l.kind.nothing(result.Value) {
		outcome = "placeholder"
	}
	metrics.looked(l.kind.name(), outcome, 1)
	storage.ReadsOf(ctx).InRedis(1)
	l.results[i] = result
	return true
}

// fill reads what is missing from the store in one call, and stores the values in one round trip, for which callers do not
// wait. If the store has failed, it gives the lease back.
func (l *lookUp[Q, V]) fill(ctx context.Context, leased []int) {
	if len(leased) == 0 {
		return
	}
	c := l.cache
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(leased))
	for n, r := range l.read(ctx, leased) {
		q := l.queries[leased[n]]
		l.results[leased[n]] = r
		script, version, args := l.kind.fill(q, r.Value)
		if r.Err != nil {
			version = -1
		}
		args = append([]any{l.token, version, lifeOf(l.kind.nothing(r.Value)).Milliseconds()}, args...)
		if command := script.EvalSha(ctx, pipe, []string{l.kind.key(l.epoch, q)}, args...); r.Err == nil {
			commands[n] = command
		}
	}
	go func() {
		_ = c.exchange(context.WithoutCancel(ctx), "fill", pipe) // a value that is not stored is missing, nothing worse
		for _, command := range commands {
			c.cfg.Metrics.filled(l.kind.name(), outcomeOf(command))
		}
	}()
}

// outcomeOf names the outcome of a fill, which the script returns as a number.
func outcomeOf(command *redis.Cmd) string {
	if command == nil {
		return "unread"
	}
	switch answer, err := command.Int(); {
	case err != nil:
		return "failed"
	case answer == 1:
		return "taken"
	case answer == 0:
		return "lost"
	}
	return "older"
}

// read asks the store for the queries at some indices, once one of the slots for that is free.
func (l *lookUp[Q, V]) read(ctx context.Context, some []int) []storage.Result[V] {
	if len(some) == 0 {
		return nil
	}
	if err := l.cache.source.Acquire(ctx, 1); err != nil {
		return slices.Repeat([]storage.Result[V]{{Err: fmt.Errorf("wait to read %s: %w", l.kind.name(), err)}}, len(some))
	}
	defer l.cache.source.Release(1)
	return l.kind.read(ctx, l.cache.cfg.Source, storage.Chosen(l.queries, some))
}

// leaseLife is how long a lease or a mark lasts: longer than any fill.
func (c *Cache) leaseLife() time.Duration {
	return fillTimeout + c.cfg.Timeout + time.Second
}

func lifeOf(nothing bool) time.Duration {
	life := keep
	if nothing {
		life = keepNothing
	}
	return time.Duration(float64(life) * (0.8 + 0.4*rand.Float64()))
}

// exchange sends a pipeline and returns an error unless all of it was answered. Each command also
// has its own error.
func (c *Cache) exchange(ctx context.Context, what string, pipe redis.Pipeliner) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	_, err := pipe.Exec(ctx)
	if err == nil || errors.Is(err, redis.Nil) { // a key that is not there
		c.breaker.done(true)
		return nil
	}
	if strings.HasPrefix(err.Error(), "NOSCRIPT") { // the scripts were removed: load them again
		c.epoch.Store(nil)
	}
	if cluster, ok := c.cfg.Redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // otherwise it would go on asking a dead master for a minute
	}
	c.failed(what)
	return err
}

// failed counts a failed exchange with Redis.
func (c *Cache) failed(what string) {
	c.cfg.Metrics.errors.WithLabelValues(what).Inc()
	c.breaker.done(false)
}
