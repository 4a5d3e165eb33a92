// Package rediscache keeps users with their counts, and their lists, in a Redis that all gateways of a deployment share: one server or
// a cluster, version 6 or later. It answers as the store would, at some moment since the question or shortly before. If Redis is
// away, it answers from the store.
//
// The one source of truth for versions is the row of user_counts: every write raises it in its transaction. A key is a hash for one user
// and one kind of value: the version v, the value and the counts under names that end in their form, and a lease l. The protocol:
//
//   - Fill: a look-up takes the lease of what is missing in the step in which it looks, reads the store, and stores what it has
//     read, with its version, if it still holds the lease and no greater version is known. So a value that was read before a change is
//     never stored after it. Meanwhile others read the store, and store nothing. That something is not there is stored, too.
//   - Change: before a write is answered, its users' keys are raised to its version. A user of the version before gets the new counts, if
//     it is kept in the writer's form. All else that is older is removed, in whatever form, and its leases end. Changes may be
//     reported late, twice, by others, and in any order. A write that does not know the version removes the keys.
//   - Gap: all keys begin with an epoch, on which all gateways agree. A new one begins when Redis is another process, which may have old
//     data from its disk, when it has lost its memory, and when changes are unknown. Each answer is trusted only if
//     the epoch still holds. A gateway that could not report a change reads nothing here until it has, and then tells all others.
//   - Time to live: ten minutes, a minute for what is not there; a change does not prolong it. A lease, and a version without a value, last
//     longer than any look-up.
//
// Gateways with values of another form neither read ours nor we theirs, but they have the same epoch, keys, versions and leases:
// these keep their form, and whoever changes the bytes of a value changes the constant form.
package rediscache

import (
	"context"
	crand "crypto/rand"
	"embed"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/metrics"
)

// form is that of the bytes of values. A new text of users makes another one.
var form = "1." + strconv.Itoa(len(storage.UserTexts))

const (
	keep        = 10 * time.Minute       // how long a value is kept, ± 20 %, so that values stored together do not expire together
	keepNothing = time.Minute            // the same for the absence of a value
	lookUpTime  = 5 * time.Second        // ends a look-up, also in the store
	leaseLife   = 7 * time.Second        // of a lease, and of a version without a value
	timeout     = 100 * time.Millisecond // ends an exchange with Redis
)

// All keys of a call are in one slot of a cluster.
var (
	//go:embed lua
	lua embed.FS

	get, fill, changed = epoch.Script(lua, "get"), epoch.Script(lua, "fill"), epoch.Script(lua, "changed")
)

// Cache is in front of the store, for profiles and lists. Posts are read from there: one statement reads 20 of them in 0.24 ms, and Redis
// would take 0.21. A cache is safe for concurrent use. Callers must not change what it returns.
type Cache struct {
	storage.Answering
	store     storage.Bundler
	clock     *epoch.Clock
	corrected func([]storage.UserID)
	lookups   *prometheus.CounterVec
	late      prometheus.Gauge
	filling   atomic.Int64 // values on their way to Redis

	form     string // these are the constants, which tests change
	timeout  time.Duration
	mostLate int

	behind  atomic.Bool // Redis is left alone
	mu      sync.Mutex
	users   map[storage.UserID]bool // whose changes have not been reported
	all     bool                    // a new epoch has to begin
	closed  context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

// New makes a cache. It does not contact Redis yet. corrected is called with users of whom Redis had old values for a while, because
// their changes could not be reported at once: other gateways may have kept those values. Without users: of everybody.
func New(clock *epoch.Clock, store storage.Bundler, corrected func([]storage.UserID), registerer prometheus.Registerer) *Cache {
	made := metrics.In(registerer)
	c := &Cache{
		store: store, clock: clock, corrected: corrected, form: form, timeout: timeout, mostLate: mostLate, users: map[storage.UserID]bool{},
		lookups: made.Counters("kith_redis_cache_lookups_total", "Look-ups of users and lists in Redis, by how they ended.", "kind", "outcome"),
		late:    made.Gauge("kith_redis_cache_late_users", "Changed users that could not be reported to Redis yet."),
	}
	c.Over(store)
	storage.ProfileLookups.AnsweredBy(&c.Answering, func(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
		return look(ctx, c, users, ids)
	})
	for _, side := range [...]storage.Side{storage.Forward, storage.Inverse} {
		of := lists(side)
		of.AnsweredBy(&c.Answering, func(ctx context.Context, queries []storage.ListQuery) []storage.Result[storage.List] {
			return look(ctx, c, of, queries)
		})
	}
	c.closed, c.close = context.WithCancel(context.Background())
	return c
}

// Close drops the changes that have not been reported yet: see [Cache.Behind].
func (c *Cache) Close() {
	c.mu.Lock() // nothing begins while Close waits
	c.close()
	c.mu.Unlock()
	c.running.Wait()
}

// look answers each query at its index: from Redis, or from the store and into Redis, or from the store alone. It ends with its caller:
// the cache in the process joins callers, and reads on behalf of all of them.
func look[Q comparable, V any](ctx context.Context, c *Cache, k kind[Q, V], queries []Q) []storage.Result[V] {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	results, token := make([]storage.Result[V], len(queries)), crand.Text()
	e, replies := c.ask(ctx, token, k.name, storage.Each(queries, k.owner))
	pipe := c.clock.Redis.Pipeline()
	var left, leased []int
	for i, q := range queries {
		outcome := "failed"
		switch reply := replies[i].(type) {
		case []any:
			outcome = "unfit"
			if r, ok := k.found(q, storedOf(reply)); ok {
				outcome, results[i] = "hit", r
			}
		case int64:
			if outcome = "busy"; reply == 1 {
				outcome, leased = "miss", append(leased, i)
			}
		}
		if c.lookups.WithLabelValues(k.name, outcome).Inc(); outcome != "hit" {
			left = append(left, i)
		}
	}
	storage.ReadsOf(ctx).InRedis(len(queries) - len(left))
	if len(left) == 0 {
		return results
	}
	for n, r := range k.Read(ctx, c.store, storage.Chosen(queries, left)...) {
		results[left[n]] = r
	}
	for _, i := range leased {
		v, life := k.keep(queries[i], results[i].Value), keep
		if v.nothing {
			life = keepNothing
		}
		if results[i].Err != nil {
			v.version = -1
		}
		life = time.Duration(float64(life) * (0.8 + 0.4*rand.Float64()))
		fill.EvalSha(ctx, pipe, []string{key(e, k.name, k.owner(queries[i]))}, c.form, token, v.version, life.Milliseconds(), v.value, v.counts)
	}
	if pipe.Len() > 0 {
		c.filling.Add(1)
		go func() { // callers do not wait for it
			defer c.filling.Add(-1)
			_ = c.exchange(context.WithoutCancel(ctx), pipe) // a value that is not stored is missing, nothing worse
		}()
	}
	return results
}

// ask asks Redis for what it keeps of some users, and takes the leases on what is missing, in one exchange. A reply is a list if there
// is a value, 1 with the lease, 0 if somebody else has that, nil if Redis was not asked or has not answered.
func (c *Cache) ask(ctx context.Context, token, kind string, ids []storage.UserID) (e *epoch.Epoch, replies []any) {
	replies = make([]any, len(ids))
	if c.behind.Load() {
		return nil, replies
	}
	learning, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	e, err := c.clock.Known(learning)
	if err != nil {
		if ctx.Err() == nil {
			c.leave()
		}
		return nil, replies
	}
	pipe := c.clock.Redis.Pipeline()
	commands := storage.Each(ids, func(id storage.UserID) *redis.Cmd {
		return get.EvalSha(ctx, pipe, []string{key(e, kind, id)}, c.form, token, leaseLife.Milliseconds())
	})
	name := c.clock.Ask(ctx, pipe)
	_ = c.exchange(ctx, pipe) // each command has its own error
	if e.Confirmed(name) {
		replies = storage.Each(commands, (*redis.Cmd).Val)
	}
	return e, replies
}

// exchange sends a pipeline, and returns an error unless all of it was answered. Then Redis is left alone for a while.
func (c *Cache) exchange(ctx context.Context, pipe redis.Pipeliner) error {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, err := pipe.Exec(within)
	if err == nil || errors.Is(err, redis.Nil) { // a key that is not there
		return nil
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.clock.Forget()
	}
	if cluster, ok := c.clock.Redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // otherwise it would go on asking a dead master for a minute
	}
	if ctx.Err() == nil {
		c.leave()
	}
	return err
}
