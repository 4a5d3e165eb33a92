package localcache

import (
	"testing"
	"time"
)

// No value is kept for longer than it may be wrong, nor for much less.
func TestLifetimes(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &Cache{now: func() time.Time { return now }}
	for range 1000 {
		if d := c.lives(keep).expiry().Sub(now); d > keep || d < keep*4/5 {
			t.Fatalf("an entry is kept for %s, want at most %s", d, keep)
		}
	}
}
