package stream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// tend trims the stream, measures how far the consumers are behind, and forgets consumers that are
// long gone. Every consumer does this; it is harmless if several do it.
func (c *Consumer) tend(ctx context.Context) {
	ticker := time.NewTicker(c.Tend)
	defer ticker.Stop()
	for round := 0; ; round++ {
		err := c.tendOnce(ctx)
		if err == nil && round%60 == 0 {
			err = c.forget(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.Logger.DebugContext(ctx, "stream is not tended", "stream", c.Key, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Consumer) tendOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	asked := time.Now()
	groups, err := c.Redis.XInfoGroups(ctx, c.Key).Result()
	if err != nil {
		return fmt.Errorf("ask for groups: %w", err)
	}
	if len(groups) == 0 {
		return nil
	}
	var keep string // the first entry that some group still needs
	for _, g := range groups {
		needed, err := c.needed(ctx, g)
		if err != nil {
			return err
		}
		if g.Name == Group {
			if err := c.measure(ctx, g, needed, asked); err != nil {
				return err
			}
		}
		if keep == "" || before(needed, keep) {
			keep = needed
		}
	}
	// Approximate trimming is cheap: it drops whole nodes of about a hundred entries.
	if err := c.Redis.XTrimMinIDApprox(ctx, c.Key, keep, 0).Err(); err != nil {
		return fmt.Errorf("trim: %w", err)
	}
	return nil
}

// needed is the smallest id that a group has not acknowledged or, if nothing is pending, the one
// after the last it was given. Smaller ids have been acknowledged and stay so, so it does no harm
// that time passes between the questions.
func (c *Consumer) needed(ctx context.Context, g redis.XInfoGroup) (string, error) {
	if g.Pending > 0 {
		pending, err := c.Redis.XPending(ctx, c.Key, g.Name).Result()
		if err != nil {
			return "", fmt.Errorf("ask what is pending: %w", err)
		}
		if pending.Count > 0 {
			// By now the group may have been given more entries, but none with smaller ids.
			return pending.Lower, nil
		}
	}
	return following(g.LastDeliveredID), nil
}

// measure notes how far the group is behind, or was when Redis was asked about it.
func (c *Consumer) measure(ctx context.Context, g redis.XInfoGroup, needed string, asked time.Time) error {
	// The first entry from there on is the oldest not acknowledged: all before it are acknowledged,
	// and pending entries have not been removed.
	oldest, err := c.Redis.XRangeN(ctx, c.Key, needed, "+", 1).Result()
	if err != nil {
		return fmt.Errorf("look for the oldest entry: %w", err)
	}
	s := State{Backlog: g.Lag, Pending: g.Pending, At: asked}
	if len(oldest) > 0 {
		now, err := c.Redis.Time(ctx).Result()
		if err != nil {
			return fmt.Errorf("ask for the time: %w", err)
		}
		s.Age = max(0, now.Sub(addedAt(oldest[0].ID)))
	}
	c.state.Store(&s)
	c.Metrics.observe(s)
	return nil
}

// forgetAfter is how long a consumer may have nothing before it is considered gone.
const forgetAfter = time.Hour

// forgetScript removes consumers that have been idle for long and have nothing pending. Removing a
// consumer with pending entries would lose them, so checking and removing must be one step.
var forgetScript = redis.NewScript(`
local forgotten = 0
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
	local c = {}
	for i = 1, #consumer, 2 do c[consumer[i]] = consumer[i + 1] end
	if c.pending == 0 and c.idle > tonumber(ARGV[2]) then
		redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], c.name)
		forgotten = forgotten + 1
	end
end
return forgotten`)

func (c *Consumer) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	if err := forgetScript.Run(ctx, c.Redis, []string{c.Key}, Group, forgetAfter.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("forget consumers: %w", err)
	}
	return nil
}

// split splits an id, "milliseconds-number".
func split(id string) (ms, n uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	n, _ = strconv.ParseUint(second, 10, 64)
	return ms, n
}

// following returns the smallest id after an id.
func following(id string) string {
	ms, n := split(id)
	if n == 1<<64-1 {
		return strconv.FormatUint(ms+1, 10) + "-0"
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(n+1, 10)
}

// before reports whether an id is smaller than another.
func before(a, b string) bool {
	ams, an := split(a)
	bms, bn := split(b)
	return ams < bms || ams == bms && an < bn
}
