package rediscache

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Epoch is for others who keep data in the same Redis, and have to drop it whenever the cache's is dropped.
type Epoch struct {
	cache *Cache
	held  *epoch
}

// Name is the same in all gateways, and another one in each epoch.
func (e Epoch) Name() string { return e.held.name }

// Holds reports whether the epoch is not over as far as this gateway knows. Called after an answer of Redis,
// it reports whether that answer can be trusted.
func (e Epoch) Holds() bool { return e.cache.holds(e.held) }

// Epoch asks Redis for the epoch.
func (c *Cache) Epoch(ctx context.Context) (Epoch, error) {
	for {
		e, err := c.currentEpoch(ctx)
		if err != nil {
			return Epoch{}, err
		}
		name := c.cfg.Redis.Get(ctx, c.epochKey())
		if c.verify(e, name) {
			return Epoch{c, e}, nil
		}
		if err := name.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return Epoch{}, err
		}
	}
}
