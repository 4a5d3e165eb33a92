package gateway

import (
	"context"
	"strings"
	"testing"
)

func newTestCache() *cache[string] {
	return newCache(3, 80, func(_ string, value string) int { return len(value) })
}

func holds(c *cache[string], key string) bool {
	_, ok := c.Get(context.Background(), key)
	return ok
}

func TestCacheDropsWhatWasNotUsedForLongest(t *testing.T) {
	c, ctx := newTestCache(), context.Background()
	for _, key := range []string{"a", "b", "c"} {
		c.Add(ctx, key, key)
	}
	holds(c, "a")
	c.Add(ctx, "d", "d")
	if !holds(c, "a") || holds(c, "b") || !holds(c, "c") || !holds(c, "d") {
		t.Errorf("holds %v", c.entries)
	}
}

func TestCacheIsBoundedInSize(t *testing.T) {
	c, ctx := newCache(1000, 80, func(_ string, value string) int { return len(value) }), context.Background()
	for i := range 100 {
		c.Add(ctx, string(rune('a'+i)), strings.Repeat("x", 10))
		if c.size > 80 || c.size != 10*c.recent.Len() || c.recent.Len() != len(c.entries) {
			t.Fatalf("size %d, %d entries, %d in order", c.size, len(c.entries), c.recent.Len())
		}
	}
	c.Add(ctx, "long", strings.Repeat("x", 11))
	if holds(c, "long") || c.recent.Len() != 8 {
		t.Error("a value of more than an eighth was kept")
	}
}

func TestCacheReplaces(t *testing.T) {
	c, ctx := newTestCache(), context.Background()
	c.Add(ctx, "a", "1")
	c.Add(ctx, "a", "22")
	if value, _ := c.Get(ctx, "a"); value != "22" || c.size != 2 || c.recent.Len() != 1 {
		t.Errorf("%q, size %d, %d entries", value, c.size, c.recent.Len())
	}
}
