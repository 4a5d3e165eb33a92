package rediscache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// epoch is the part of all keys that changes when the contents of Redis cannot be trusted any more:
// when a Redis is another process than before, or a gateway could not deliver its changes. All
// gateways have the same epoch. Its name is stored in Redis under one key: the runs of the masters,
// a dot, and something random. Deleting that key therefore empties the cache.
type epoch struct {
	name string // as stored in Redis
	keys string // the beginning of all keys
	turn int64  // of [Runs]: while it stays the same, so do the masters
}

// verifyEvery is how long an epoch is trusted before Redis is asked whether it is still the current
// one: another gateway may have begun a new one for a reason that only it knows.
const verifyEvery = 50 * time.Millisecond

// holds reports whether an epoch is still the epoch of this gateway. Called after an answer of Redis,
// it reports whether that answer can be trusted: a connection to a new process is noticed before it
// carries any answer.
func (c *Cache) holds(e *epoch) bool {
	return c.epoch.Load() == e && c.cfg.Runs.turn.Load() == e.turn
}

// currentEpoch returns the epoch, and learns it first if necessary.
func (c *Cache) currentEpoch(ctx context.Context) (*epoch, error) {
	if e := c.epoch.Load(); e != nil && c.holds(e) {
		return e, nil
	}
	return c.learnEpoch(ctx, false)
}

// Empty begins a new epoch: nobody reads what was kept until now. It is for changes that are too
// many to report one by one.
func (c *Cache) Empty(ctx context.Context) error {
	_, err := c.learnEpoch(ctx, true)
	return err
}

// learnEpoch asks all masters who they are, gives them the scripts, and agrees with the other
// gateways on a name. Concurrent callers share one answer.
func (c *Cache) learnEpoch(ctx context.Context, fresh bool) (*epoch, error) {
	answer := c.learning.DoChan(strconv.FormatBool(fresh), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
		defer cancel()
		c.learnAlone.Lock() // otherwise a slow call would bring back the epoch before a fresh one
		defer c.learnAlone.Unlock()
		if e := c.epoch.Load(); !fresh && e != nil && c.holds(e) { // learned while the caller waited
			return e, nil
		}
		e, err := c.learn(ctx, fresh)
		if err != nil {
			return nil, fmt.Errorf("learn the epoch of Redis: %w", err)
		}
		c.epoch.Store(e)
		c.verified.Store(time.Now().UnixNano())
		c.cfg.Metrics.epochs.Inc()
		return e, nil
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return nil, a.Err
		}
		return a.Val.(*epoch), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const learnTimeout = time.Second

func (c *Cache) learn(ctx context.Context, fresh bool) (*epoch, error) {
	const attempts = 3 // a new process may be noticed only while the masters are asked
	for range attempts {
		c.cfg.Runs.asking()
		runs, err := c.askMasters(ctx)
		if err != nil {
			return nil, err
		}
		turn, ok := c.cfg.Runs.believe(runs)
		if !ok {
			continue
		}
		random := strconv.FormatUint(rand.Uint64()>>24, 36)
		name, err := epochScript.EvalSha(ctx, c.cfg.Redis, []string{c.epochKey()}, nameOf(runs), random, fresh).Text()
		if err != nil {
			return nil, err
		}
		_, random, _ = strings.Cut(name, ".")
		return &epoch{name: name, keys: c.cfg.Prefix + shared + random + ":", turn: turn}, nil
	}
	return nil, errors.New("the masters keep changing")
}

// askMasters gives all masters the scripts and returns their run ids.
func (c *Cache) askMasters(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var runs []string
	ask := func(ctx context.Context, one *redis.Client) error {
		pipe := one.Pipeline()
		info := pipe.Info(ctx, "server")
		for _, text := range scripts {
			pipe.ScriptLoad(ctx, text)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		run := infoField(info.Val(), "run_id")
		if run == "" {
			return errors.New("it does not report its run_id")
		}
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, run)
		return nil
	}
	if cluster, ok := c.cfg.Redis.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, ask)
		return runs, err
	}
	err := ask(ctx, c.cfg.Redis.(*redis.Client))
	return runs, err
}

// shared follows the prefix. Gateways of different versions see each other's changes only if they have the same epoch, keys, versions
// and leases. So these keep their form, and values change theirs: a user's get fields of other names, a list's another first byte, and
// each version takes values of others for missing.
const shared = ":1:"

func (c *Cache) epochKey() string { return c.cfg.Prefix + shared + "epoch" }

// verifying adds the question for the epoch to a pipeline if it is due; otherwise it returns nil.
func (c *Cache) verifying(ctx context.Context, pipe redis.Pipeliner) *redis.StringCmd {
	last := c.verified.Load()
	now := time.Now().UnixNano()
	if now-last < int64(verifyEvery) || !c.verified.CompareAndSwap(last, now) {
		return nil
	}
	return pipe.Get(ctx, c.epochKey())
}

// verify checks the answer. It returns false if the epoch is over or unknown.
func (c *Cache) verify(e *epoch, answer *redis.StringCmd) bool {
	if answer == nil {
		return c.holds(e)
	}
	switch name, err := answer.Result(); {
	case err != nil && !errors.Is(err, redis.Nil):
		c.verified.Store(0) // the next caller asks
		return false
	case name != e.name:
		c.epoch.CompareAndSwap(e, nil)
		return false
	}
	return c.holds(e)
}
