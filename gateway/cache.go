package gateway

import (
	"container/list"
	"context"
	"sync"
)

// cache keeps the values used last, bounded both in number and in size: a bound
// on the number alone would let a thousand long queries fill the memory. It is a
// [graphql.Cache].
type cache[V any] struct {
	maxEntries, maxSize int
	sizeOf              func(key string, value V) int

	mu      sync.Mutex
	size    int
	entries map[string]*list.Element
	recent  *list.List // of *cacheEntry[V], the last used in front
}

type cacheEntry[V any] struct {
	key   string
	value V
	size  int
}

func newCache[V any](maxEntries, maxSize int, sizeOf func(string, V) int) *cache[V] {
	return &cache[V]{
		maxEntries: maxEntries,
		maxSize:    maxSize,
		sizeOf:     sizeOf,
		entries:    make(map[string]*list.Element),
		recent:     list.New(),
	}
}

// Get returns the value of a key and makes it the last used.
func (c *cache[V]) Get(_ context.Context, key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*cacheEntry[V]).value, true
}

// Add puts a value in, in exchange for those not used for the longest time. One
// that would take more than an eighth of the cache is not kept.
func (c *cache[V]) Add(_ context.Context, key string, value V) {
	entry := &cacheEntry[V]{key, value, c.sizeOf(key, value)}
	if entry.size > c.maxSize/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[key]; ok {
		c.remove(old)
	}
	c.entries[key] = c.recent.PushFront(entry)
	c.size += entry.size
	for c.size > c.maxSize || c.recent.Len() > c.maxEntries {
		c.remove(c.recent.Back())
	}
}

func (c *cache[V]) remove(element *list.Element) {
	entry := c.recent.Remove(element).(*cacheEntry[V])
	delete(c.entries, entry.key)
	c.size -= entry.size
}
