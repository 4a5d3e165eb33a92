package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage/sleep"
)

// ConsumerConfig says what to consume and how. Redis, Propagator and Name are
// required; a field left zero takes its default.
type ConsumerConfig struct {
	// Redis holds the stream. Set its ContextTimeoutEnabled, or a hanging Redis is noticed late.
	Redis redis.UniversalClient

	// Propagator gets the rows. The consequences of a row are propagated before its entry is acknowledged, so
	// that another consumer gets the entry if this one dies in between.
	Propagator Propagator

	// Name distinguishes the consumers of a group, for example by host and machine id. A consumer
	// that restarts under its old name continues at once with the entries it had; under another
	// name they wait for ClaimAfter. If two run under one name, some work is done twice.
	Name string

	// Key of the stream. Defaults to [DefaultKey].
	Key string

	// Batch is how many entries are read and applied at once. Defaults to 500.
	Batch int

	// ClaimAfter is how long an entry may stay with a consumer before others take it over. Defaults
	// to 5 s.
	ClaimAfter time.Duration

	// Tend is how often trimming and measuring run. Defaults to 1 s.
	Tend time.Duration

	// Metrics counts what is applied. Defaults to none.
	Metrics *Metrics

	// Logger logs failures. Defaults to [slog.Default].
	Logger *slog.Logger
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.Key = cmp.Or(c.Key, DefaultKey)
	c.Batch = cmp.Or(c.Batch, 500)
	c.ClaimAfter = cmp.Or(c.ClaimAfter, 5*time.Second)
	c.Tend = cmp.Or(c.Tend, time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Metrics = cmp.Or(c.Metrics, NewMetrics(nil))
	return c
}

// Timeouts of a consumer.
const (
	blocked    = time.Second     // how long Redis holds a read until something comes
	answers    = 2 * time.Second // how long Redis may take to answer, on top of that
	lingers    = 3 * time.Second // how long rows already read may still be applied after the end
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
	shortPause = 200 * time.Millisecond // the longest one while a look for abandoned entries is under way

	first = "0-0" // id before all entries
)

// Consumer applies what the stream holds.
type Consumer struct {
	ConsumerConfig
	state   atomic.Pointer[State]
	failing atomic.Pointer[interruption] // nil while Redis answers

	claimAt   time.Time // when to look for abandoned entries next
	claimFrom string    // where the look that is under way goes on
}

// NewConsumer makes a consumer. Its Run does the work.
func NewConsumer(cfg ConsumerConfig) *Consumer {
	return &Consumer{ConsumerConfig: cfg.withDefaults(), claimFrom: first}
}

// interruption is why the stream cannot be read, and since when.
type interruption struct {
	since time.Time
	err   error
}

// State is how far all consumers are behind, as last measured. The age is at least the time for which this consumer has not been
// able to read the stream.
func (c *Consumer) State() (s State) {
	if measured := c.state.Load(); measured != nil {
		s = *measured
	}
	if f := c.failing.Load(); f != nil {
		s.Age = max(s.Age, time.Since(f.since))
	}
	return s
}

// Ready returns why the stream cannot be read, or nil.
func (c *Consumer) Ready(context.Context) error {
	if f := c.failing.Load(); f != nil {
		return f.err
	}
	return nil
}

// Run consumes until the context is done, and ends in no other way: it retries everything that
// fails. It still applies the entries that it has read by then, for 3 s at most; the rest is left
// for others to claim.
func (c *Consumer) Run(ctx context.Context) {
	var tending sync.WaitGroup
	tending.Go(func() { c.tend(ctx) })
	defer tending.Wait()
	pause := firstPause
	for ctx.Err() == nil {
		progress, err := c.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if progress {
			pause = firstPause
		}
		failing := &interruption{time.Now(), err}
		if before := c.failing.Load(); before != nil {
			failing.since = before.since
		}
		c.failing.Store(failing)
		c.Logger.WarnContext(ctx, "cannot read the stream: retrying", "stream", c.Key, "error", err)
		_ = sleep.For(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// session consumes until Redis fails: first the entries that the consumer was given in an earlier
// run, then new ones, and now and then those that others abandoned. It returns whether anything was
// read at all.
func (c *Consumer) session(ctx context.Context) (progress bool, err error) {
	working, done := lingering(ctx)
	defer done()
	if err := c.ensureGroup(ctx); err != nil {
		return false, err
	}
	if err := c.resume(ctx, working); err != nil {
		return false, err
	}
	pause := firstPause
	for ctx.Err() == nil {
		claimed, err := c.claim(ctx, working)
		if err != nil {
			return progress, err
		}
		fresh, err := c.read(ctx, ">")
		if err != nil {
			return progress, err
		}
		progress = true
		c.failing.Store(nil)
		complete, err := c.settle(working, fresh)
		if err != nil {
			return progress, err
		}
		if claimed && complete {
			pause = firstPause
			continue
		}
		// Something could not be applied. It stays pending and will be claimed; new entries, some
		// of which may go to healthy shards, are not delayed for long.
		_ = sleep.For(ctx, pause)
		if pause = min(2*pause, longPause); c.claimFrom != first {
			pause = min(pause, shortPause)
		}
	}
	return progress, ctx.Err()
}

// ensureGroup makes the group, and the stream with it, if there is none. The group begins with the first entry, because the entries in
// the stream have not been applied. A full Redis refuses this command even if there is a group. That is no error: consuming makes room.
func (c *Consumer) ensureGroup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	err := c.Redis.XGroupCreateMkStream(ctx, c.Key, Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") && !redis.IsOOMError(err) {
		return fmt.Errorf("make group %s: %w", Group, err)
	}
	return nil
}

// resume settles the entries that this consumer was given before and did not acknowledge. It stops at
// those that cannot be applied: they and the rest will be claimed later.
func (c *Consumer) resume(ctx, working context.Context) error {
	for after := "0"; ctx.Err() == nil; {
		entries, err := c.read(ctx, after)
		if err != nil || len(entries) == 0 {
			return err
		}
		if complete, err := c.settle(working, entries); err != nil || !complete {
			return err
		}
		after = entries[len(entries)-1].ID
	}
	return nil
}

// read reads new entries (after ">"), for which it waits, or this consumer's own pending ones after
// an id.
func (c *Consumer) read(ctx context.Context, after string) ([]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, blocked+answers)
	defer cancel()
	wait := blocked
	if after != ">" || c.claimFrom != first {
		wait = -1
	}
	found, err := c.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: Group, Consumer: c.Name, Streams: []string{c.Key, after}, Count: int64(c.Batch), Block: wait,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case len(found) == 0:
		return nil, nil
	}
	return found[0].Messages, nil
}

// claim takes over and settles the entries that any consumer, this one included, was given
// ClaimAfter ago. It returns whether all of it could be applied. If not, it goes on behind them the next time: those of a
// shard that is away must not be all that it ever comes to.
func (c *Consumer) claim(ctx, working context.Context) (complete bool, err error) {
	if time.Now().Before(c.claimAt) {
		return true, nil
	}
	for complete = true; complete && ctx.Err() == nil; {
		entries, next, err := c.abandoned(ctx, c.claimFrom)
		if err != nil {
			return false, err
		}
		c.Metrics.claimed.Add(float64(len(entries)))
		if complete, err = c.settle(working, entries); err != nil {
			return false, err
		}
		if c.claimFrom = next; next == first {
			c.claimAt = time.Now().Add(c.ClaimAfter / 4)
			break
		}
	}
	return complete, nil
}

func (c *Consumer) abandoned(ctx context.Context, start string) ([]redis.XMessage, string, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	entries, next, err := c.Redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: c.Key, Group: Group, Consumer: c.Name, MinIdle: c.ClaimAfter, Start: start, Count: int64(c.Batch),
	}).Result()
	if err != nil {
		return nil, "", fmt.Errorf("claim: %w", err)
	}
	return entries, next, nil
}

// lingering returns a context that lasts a while longer than another one.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		_ = sleep.For(working, lingers)
		cancel()
	})
	return working, func() { release(); cancel() }
}
