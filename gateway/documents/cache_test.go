package documents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
)

func newTestCache() *cache[string] {
	return newCache(8, 800, 100, func(_ string, value string) int { return len(value) })
}

func (c *cache[V]) holds(key string) bool {
	_, ok := c.Get(context.Background(), key)
	return ok
}

func TestCacheIsBoundedInNumberAndSize(t *testing.T) {
	ctx := context.Background()
	for _, length := range []int{1, 100} {
		c := newTestCache()
		for i := range 100 {
			c.Add(ctx, fmt.Sprint(i), strings.Repeat("x", length))
			if c.entries.CleanUp(); c.entries.EstimatedSize() > 8 || c.entries.WeightedSize() > 800 {
				t.Fatalf("%d values of %d bytes, together %d", c.entries.EstimatedSize(), length, c.entries.WeightedSize())
			}
		}
		check.Least(t, fmt.Sprintf("values of %d bytes that are kept", length), c.entries.EstimatedSize(), 7)
		c.Add(ctx, "long", strings.Repeat("x", 101))
		check.That(t, !c.holds("long"), "a value of more than an eighth is kept")
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c, ctx := newTestCache(), context.Background()
	c.Add(ctx, "used", "1")
	for i := range 100 {
		c.holds("used")
		c.Add(ctx, fmt.Sprint(i), "1")
		c.entries.CleanUp()
	}
	check.That(t, c.holds("used"), "a value that is asked for all the time has made room for others")
	c.Add(ctx, "used", "22")
	value, _ := c.Get(ctx, "used")
	check.That(t, value == "22", "a value that was replaced is %q", value)
}
