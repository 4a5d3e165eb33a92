package rediscache

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// visit is a look-up that may use Redis, under one epoch.
type visit struct {
	cache *Cache
	epoch *epoch
	token string // of the leases it takes
}

// enter begins a visit; it returns nil if Redis must not be asked now.
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

// newInstance returns the prefix of one gateway's tokens.
func newInstance() string { return strconv.FormatUint(rand.Uint64(), 36) + "." }

// failed counts a failed exchange with Redis.
func (c *Cache) failed(what string) {
	c.cfg.Metrics.errors.WithLabelValues(what).Inc()
	c.breaker.done(false)
}

// exchange sends a pipeline and returns an error unless all of it was answered. Each command also
// has its own error.
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
	if strings.HasPrefix(err.Error(), "NOSCRIPT") { // the scripts were removed: load them again
		c.epoch.Store(nil)
	}
	if cluster, ok := c.cfg.Redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // otherwise it would go on asking a dead master for a minute
	}
	c.failed(what)
	return err
}

// got are the indices of queries that Redis did not answer, by reason.
type got struct{ leased, busy, failed []int }

// get asks Redis for some keys in one round trip, and takes the leases on missing ones in the same
// trip.
func (l *lookUp[Q, V]) get(ctx context.Context, v *visit, some []int) got {
	c := l.cache
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(some))
	for n, i := range some {
		commands[n] = l.kind.get(ctx, pipe, v.epoch, l.queries[i], v.token, c.leaseLife())
	}
	verifying := c.verifying(ctx, pipe)
	_ = c.exchange(ctx, "get", pipe) // each command has its own error
	if !c.verify(v.epoch, verifying) {
		return got{failed: some}
	}
	var sorted got
	for n, i := range some {
		reply, err := commands[n].Result()
		switch state, _ := reply.(int64); {
		case err != nil:
			sorted.failed = append(sorted.failed, i)
		case reply == int64(1):
			sorted.leased = append(sorted.leased, i)
		case reply == state: // 0
			sorted.busy = append(sorted.busy, i)
		default:
			if !l.found(ctx, v, i, reply) {
				sorted.failed = append(sorted.failed, i)
			}
		}
	}
	c.cfg.Metrics.looked(l.kind.name(), "miss", len(sorted.leased))
	return sorted
}

// found answers a query with what Redis has. If the value cannot be read, it removes the value and
// returns false.
func (l *lookUp[Q, V]) found(ctx context.Context, v *visit, i int, reply any) bool {
	metrics := l.cache.cfg.Metrics
	result, err := l.kind.parse(reply, l.queries[i])
	if err != nil {
		pipe := l.cache.cfg.Redis.Pipeline()
		l.kind.drop(ctx, pipe, v.epoch, l.queries[i])
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
	l.answer(i, result)
	return true
}

// fill reads what is missing from the store in one call. It answers the queries first, and then
// stores the values in one round trip.
func (l *lookUp[Q, V]) fill(ctx context.Context, v *visit, leased []int) {
	if len(leased) == 0 {
		return
	}
	c := l.cache
	pipe := c.cfg.Redis.Pipeline()
	commands := make([]*redis.Cmd, len(leased))
	for n, r := range l.readSource(ctx, leased) {
		q := l.queries[leased[n]]
		l.answer(leased[n], r)
		if r.Err != nil {
			l.kind.release(ctx, pipe, v.epoch, q, v.token)
			continue
		}
		commands[n] = l.kind.fill(ctx, pipe, v.epoch, l.kind.widen(q), r.Value, v.token, c.life(l.kind.nothing(r.Value)))
	}
	_ = c.exchange(context.WithoutCancel(ctx), "fill", pipe) // a value that is not stored is missing, nothing worse
	for _, command := range commands {
		c.cfg.Metrics.filled(l.kind.name(), outcomeOf(command))
	}
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

// leaseLife is how long a lease or a mark lasts: longer than any fill.
func (c *Cache) leaseLife() time.Duration {
	return c.cfg.FillTimeout + c.cfg.Timeout + time.Second
}

// longestLife is how long a value may be kept.
func (c *Cache) longestLife() time.Duration { return max(c.cfg.TTL, c.cfg.NothingTTL) * 6 / 5 }

// life is how long a value is kept, ± 20 %, so that values stored together do not expire together.
func (c *Cache) life(nothing bool) time.Duration {
	life := c.cfg.TTL
	if nothing {
		life = c.cfg.NothingTTL
	}
	return time.Duration(float64(life) * (0.8 + 0.4*rand.Float64()))
}
