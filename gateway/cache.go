package gateway

import (
	"context"

	"github.com/maypok86/otter/v2"
)

// cache keeps the values used most, bounded both in number and in size: a bound
// on the number alone would let a thousand long queries fill the memory. It is a
// [graphql.Cache].
type cache[V any] struct {
	entries *otter.Cache[string, V]
	largest int
	sizeOf  func(key string, value V) int
}

// newCache makes a cache. Each value counts as at least the size of which maxEntries fit, which
// bounds the number of values.
func newCache[V any](maxEntries, maxSize int, sizeOf func(string, V) int) *cache[V] {
	return &cache[V]{
		entries: otter.Must(&otter.Options[string, V]{
			MaximumWeight: uint64(maxSize),
			Weigher:       func(key string, value V) uint32 { return uint32(max(sizeOf(key, value), maxSize/maxEntries)) },
		}),
		largest: maxSize / 8,
		sizeOf:  sizeOf,
	}
}

// Get returns the value of a key.
func (c *cache[V]) Get(_ context.Context, key string) (V, bool) { return c.entries.GetIfPresent(key) }

// Add puts a value in, and drops the values used least. A value that would take more than an eighth
// of the cache is not kept.
func (c *cache[V]) Add(_ context.Context, key string, value V) {
	if c.sizeOf(key, value) <= c.largest {
		c.entries.Set(key, value)
	}
}
