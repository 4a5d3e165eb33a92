package rediscache

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// visit is a look-up that may use Redis, under one epoch.
type visit struct {
	cache *Cache
	epoch *epoch
	token string // of the leases it takes
}

// enter begins a visit; nil while Redis is not to be asked.
func (c *Cache) enter(ctx context.Context) *visit {
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
	return &visit{c, e, c.instance + strconv.FormatUint(c.tokens.Add(1), 36)}
}

// newInstance is what the tokens of one gateway begin with.
func newInstance() string { return strconv.FormatUint(rand.Uint64(), 36) + "." }

// failed counts an exchange with Redis that went wrong.
func (c *Cache) failed(what string) {
	c.cfg.Metrics.errors.WithLabelValues(what).Inc()
	c.breaker.done(false)
}

// exchange sends a pipeline and tells whether all of it was answered. Each command has
// its own error besides.
func (c *Cache) exchange(ctx context.Context, what string, pipe redis.Pipeliner) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	_, err := pipe.Exec(ctx)
	if errors.Is(err, redis.Nil) { // a key that is not there
		err = nil
	}
	if err == nil {
		c.breaker.done(true)
		return nil
	}
	if strings.HasPrefix(err.Error(), "NOSCRIPT") { // somebody has removed them: load them again
		c.epoch.Store(nil)
	}
	if cluster, ok := c.cfg.Redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // or it would go on asking a master that is gone for a minute
	}
	c.failed(what)
	return err
}

// got is what became of flights in Redis, besides those that ended with a value.
type got[Q comparable, V any] struct {
	leased, busy, failed []*flight[Q, V]
}

// get asks Redis for all keys in one round trip, which also takes the leases on those that
// are missing.
func get[Q comparable, V any](ctx context.Context, v *visit, fs *flights[Q, V], some []*flight[Q, V]) got[Q, V] {
	c := v.cache
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(some))
	for i, f := range some {
		commands[i] = fs.get(ctx, pipe, v.epoch, f.query, v.token, c.leaseLife())
	}
	verifying := c.verifying(ctx, pipe)
	_ = c.exchange(ctx, "get", pipe) // each command tells
	if !c.verify(v.epoch, verifying) {
		return got[Q, V]{failed: some}
	}
	var sorted got[Q, V]
	for i, f := range some {
		reply, err := commands[i].Result()
		switch state, _ := reply.(int64); {
		case err != nil:
			sorted.failed = append(sorted.failed, f)
		case reply == int64(1):
			sorted.leased = append(sorted.leased, f)
		case reply == state: // 0
			sorted.busy = append(sorted.busy, f)
		default:
			if !found(ctx, v, fs, f, reply) {
				sorted.failed = append(sorted.failed, f)
			}
		}
	}
	c.cfg.Metrics.looked(fs.name(), "miss", len(sorted.leased))
	return sorted
}

// found ends a flight with what Redis has. It is false for what cannot be read, which goes.
func found[Q comparable, V any](ctx context.Context, v *visit, fs *flights[Q, V], f *flight[Q, V], reply any) bool {
	result, err := fs.parse(reply, f.query)
	if err != nil {
		pipe := v.cache.cfg.Redis.Pipeline()
		fs.drop(ctx, pipe, v.epoch, f.query)
		_ = v.cache.exchange(ctx, "drop", pipe)
		v.cache.cfg.Metrics.errors.WithLabelValues("parse").Inc()
		return false
	}
	outcome := "hit"
	if fs.nothing(result.Value) {
		outcome = "placeholder"
	}
	v.cache.cfg.Metrics.looked(fs.name(), outcome, 1)
	fs.land(f, result)
	return true
}

// fill reads what is missing from the store, in one call, and stores it, in one round trip,
// when the callers have their answers.
func fill[Q comparable, V any](ctx context.Context, v *visit, fs *flights[Q, V], leased []*flight[Q, V]) {
	c := v.cache
	results := readSource(ctx, c, fs, leased)
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(leased))
	for i, f := range leased {
		fs.land(f, results[i])
		if results[i].Err != nil {
			fs.release(ctx, pipe, v.epoch, f.query, v.token)
			continue
		}
		commands[i] = fs.fill(ctx, pipe, v.epoch, fs.widen(f.query), results[i].Value, v.token, c.life(fs.nothing(results[i].Value)))
	}
	_ = c.exchange(context.WithoutCancel(ctx), "fill", pipe) // what is not stored is missing, and no more
	for _, command := range commands {
		c.cfg.Metrics.filled(fs.name(), outcomeOf(command))
	}
}

// outcomeOf is what became of a fill, whose script tells by a number.
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

// leaseLife is how long a lease lasts, and a mark: longer than any fill.
func (c *Cache) leaseLife() time.Duration {
	return c.cfg.FillTimeout + c.cfg.Timeout + time.Second
}

// life is how long a value is kept, ± 20 %, so that what came at once does not go at once.
func (c *Cache) life(nothing bool) time.Duration {
	life := c.cfg.TTL
	if nothing {
		life = c.cfg.NothingTTL
	}
	return time.Duration(float64(life) * (0.8 + 0.4*rand.Float64()))
}
