// Package rediscache keeps users with their counts, and whole lists, in a Redis that all
// gateways of a deployment share: one server or a cluster, version 6 or later.
//
// It answers as the store would, at some moment since the question or shortly before. After
// [Cache.Changed] has reported a change, it never answers with the value before the change.
// Three mechanisms ensure that, each sufficient by itself if the others hold:
//
//   - A look-up that fills a key holds a lease on it, which any change of the user ends. So a value
//     read before a change is not stored after it.
//   - All values have versions, those of user_counts. A change removes what is older and leaves its version, if it
//     is known, and nothing older is accepted.
//   - All keys begin with an epoch, which changes as soon as Redis cannot be trusted any more:
//     after a restart, which may bring back old data, and when a change could not be delivered (see
//     [Runs] and epoch.go).
//
// If Redis is down, everything is read from the store, by a bounded number of callers at a time.
package rediscache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"kith/storage"
)

// Config says what is cached and where.
type Config struct {
	// Redis is a *redis.Client or a *redis.ClusterClient. Its options need the OnConnect of
	// Runs and ContextTimeoutEnabled.
	Redis redis.UniversalClient

	// Runs watches the connections of that client.
	Runs *Runs

	// Prefix begins all keys. Stores that share a Redis need one each.
	Prefix string

	// Source is the store.
	Source storage.Snapshots

	// Timeout ends one exchange with Redis. Defaults to 100 ms.
	Timeout time.Duration

	// MaxConcurrent is how many look-ups of the store run at a time; others wait. Defaults to 32.
	MaxConcurrent int

	// MaxLate is how many changed users are remembered while Redis is away, some 40 bytes each. If
	// there are more, a new epoch begins when Redis is back. Defaults to 100,000.
	MaxLate int

	// Corrected is called with users of whom Redis had old values for a while, because their
	// changes could not be delivered at once: other gateways may have kept those values. It is
	// called with no users if they were too many and a new epoch has begun. Defaults to none.
	Corrected func(users []storage.UserID)

	// Metrics counts. Defaults to none.
	Metrics *Metrics
}

const (
	keep        = 10 * time.Minute // how long a value is kept, ± 20 %, so that values stored together do not expire together
	keepNothing = time.Minute      // the same for the absence of a value
	fillTimeout = 5 * time.Second  // ends a look-up, also in the store
)

func (c Config) withDefaults() (Config, error) {
	switch c.Redis.(type) {
	case *redis.Client, *redis.ClusterClient:
	default:
		return c, fmt.Errorf("redis cache: a client of type %T", c.Redis)
	}
	if c.Source == nil || c.Runs == nil {
		return c, errors.New("redis cache: no source, or nobody who watches the connections")
	}
	if c.Prefix == "" || strings.ContainsAny(c.Prefix, "{}") {
		return c, fmt.Errorf("redis cache: prefix %q is empty or has braces, which mark the slot of a key", c.Prefix)
	}
	if c.Timeout <= 0 {
		c.Timeout = 100 * time.Millisecond
	}
	if c.MaxConcurrent <= 0 {
		c.MaxConcurrent = 32
	}
	if c.MaxLate <= 0 {
		c.MaxLate = 100_000
	}
	if c.Corrected == nil {
		c.Corrected = func([]storage.UserID) {}
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	return c, nil
}

// Cache is a [storage.Snapshots] in front of another one. It is safe for concurrent use. Callers
// must not change what it returns: it may be on its way into Redis.
type Cache struct {
	cfg     Config
	source  *semaphore.Weighted
	breaker *breaker
	late    *late
	tokens  atomic.Uint64

	epoch      atomic.Pointer[epoch] // nil: not known
	verified   atomic.Int64          // when Redis last confirmed the epoch, Unix nanoseconds
	learning   singleflight.Group
	learnAlone sync.Mutex
	instance   string // part of the tokens of leases
	closing    context.CancelFunc
	running    sync.WaitGroup
}

var _ storage.Snapshots = (*Cache)(nil)

// New makes a cache. It does not contact Redis yet.
func New(config Config) (*Cache, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cache{
		cfg:      config,
		source:   semaphore.NewWeighted(int64(config.MaxConcurrent)),
		breaker:  &breaker{now: time.Now, open: config.Metrics.open},
		instance: strconv.FormatUint(rand.Uint64(), 36) + ".",
		closing:  cancel,
	}
	c.late = &late{cache: c, closed: ctx}
	return c, nil
}

// Profiles implements [storage.Snapshots].
func (c *Cache) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return look(ctx, c, users{}, ids)
}

// Lists implements [storage.Snapshots], for the sides Forward and Inverse; others are read from
// the source.
func (c *Cache) Lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	if side > storage.Inverse {
		return c.cfg.Source.Lists(ctx, side, queries)
	}
	return look(ctx, c, lists{side}, queries)
}

// Posts implements [storage.Snapshots]. They are read from the source: one statement reads 20 of them in 0.24 ms, and Redis would
// take 0.21.
func (c *Cache) Posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	return c.cfg.Source.Posts(ctx, ids)
}

// Close drops the changes that have not been delivered to Redis yet: see [Cache.Changed].
func (c *Cache) Close() {
	c.closing()
	c.running.Wait()
}
