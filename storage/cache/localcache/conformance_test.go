package localcache_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// cached is a store whose reads go through a cache that is notified of its writes.
type cached struct {
	*watch.Store
	cache *localcache.Cache
}

func newCached(store storage.Store) *cached {
	c := &cached{cache: localcache.New(localcache.Config{
		Store: store, Bytes: 64 << 20,
		// Edges of the suite are from the beginning of time, and so is the clock, so that tombstones are not too old.
		Now: func() time.Time { return time.UnixMicro(0) },
	})}
	c.Store = watch.Watch(store, func(_ context.Context, w storage.Change) { c.cache.Apply(context.Background(), w, true) })
	return c
}

func (c *cached) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := storage.EdgeLookups[side].Read(ctx, c.cache, pairs...)
	for i, r := range results {
		if side.Truth() != storage.Forward && !r.Found && r.Err == nil { // it may say of a tombstone that there is nothing
			if row := storage.EdgeLookups[side].Read(ctx, c.Store, pairs[i:i+1]...)[0]; row.Value.Type == storage.None {
				results[i] = row
			}
		}
	}
	return results
}

func (c *cached) AtHand(b *storage.Bundle) { c.cache.AtHand(b) }

func (c *cached) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, c.edges)
	c.cache.Bundle(ctx, b)
}

func (c *cached) Close() error {
	c.cache.Close()
	return c.Store.Close()
}

// A write is visible at once, whatever was kept before it.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return newCached(oracle.New()) })
}
