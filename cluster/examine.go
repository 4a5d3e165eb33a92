package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redis/go-redis/v9"

	"kith/storage/doctor"
)

// ExamineRedis looks at the Redis, as far as it answers questions. inboxes means that home feeds are copied there.
func (d Config) ExamineRedis(ctx context.Context, inboxes bool) (all doctor.List) {
	if d.Redis == "" {
		all.OK("redis", "", "none is set: gateways do not hear of one another's changes through it")
		return all
	}
	r, err := d.OpenRedis(ctx)
	if err != nil {
		mend := "start it, or correct its address in KITH_REDIS"
		if err := errors.Unwrap(err); err != nil && strings.Contains(err.Error(), "replica") {
			mend = "name the master"
		}
		all.Fail("redis", "", err.Error(), mend)
		return all
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := redisCheck{List: &all, Config: d, client: r.client, inboxes: inboxes}
	c.version(ctx)
	c.script(ctx)
	c.memory(ctx)
	c.persistence(ctx)
	c.clock(ctx)
	c.encryption()
	return all
}

type redisCheck struct {
	*doctor.List
	Config
	client  redis.UniversalClient
	inboxes bool
	info    map[string]string
}

// The Redis that the tests run on, and the one that has all commands that are used (XAUTOCLAIM).
const testedRedis, leastRedis = "7.0", "6.2"

func (c *redisCheck) version(ctx context.Context) {
	text, err := c.client.Info(ctx).Result()
	if err != nil {
		c.Warn("redis version", "", fmt.Sprintf("INFO is refused: %v", err), "allow INFO to its user, so that this can be checked")
		return
	}
	c.info = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			c.info[name] = value
		}
	}
	have := c.info["redis_version"]
	switch {
	case older(have, leastRedis):
		c.Fail("redis version", "", have+" is too old", "update it to "+testedRedis+" or later")
	case older(have, testedRedis):
		c.Warn("redis version", "", have+" is older than what the tests run on", "update it to "+testedRedis+" or later")
	default:
		c.OK("redis version", "", "%s", have)
	}
}

// older compares the first two numbers of versions.
func older(a, b string) bool {
	numbers := func(v string) (n []int) {
		for _, part := range strings.SplitN(v, ".", 3) {
			i, _ := strconv.Atoi(part)
			n = append(n, i)
		}
		return append(n, 0, 0)[:2]
	}
	return slices.Compare(numbers(a), numbers(b)) < 0
}

// script checks whether scripts may run: fills of the cache and inboxes are scripts.
func (c *redisCheck) script(ctx context.Context) {
	if err := c.client.Eval(ctx, `return 1`, []string{"kith:doctor"}).Err(); err != nil {
		c.Fail("redis scripts", "", fmt.Sprintf("EVAL is refused: %v", err), "ACL SETUSER … +@scripting")
		return
	}
	c.OK("redis scripts", "", "Lua runs")
}

// memory looks for policies under which Redis drops data that cannot be made again.
func (c *redisCheck) memory(ctx context.Context) {
	policy, limit := c.setting(ctx, "maxmemory-policy"), c.setting(ctx, "maxmemory")
	bytes, _ := strconv.ParseUint(limit, 10, 64)
	switch {
	case policy == "":
		c.Warn("redis memory", "", "its policy is not shown (CONFIG GET and INFO)", "see that maxmemory-policy is volatile-lru, or noeviction in the mode stream")
	case strings.HasPrefix(policy, "allkeys-"):
		c.Fail("redis memory", "", "maxmemory-policy is "+policy+": it drops keys without a time to live as well, such as the epoch of the cache"+c.when(c.Redundancy == Stream, " and the stream")+c.when(c.inboxes, ", and inboxes"),
			"CONFIG SET maxmemory-policy "+c.right())
	case c.Redundancy == Stream && policy != "noeviction":
		c.Warn("redis memory", "", "maxmemory-policy is "+policy+": in the mode stream a full Redis should refuse follows rather than forget", "CONFIG SET maxmemory-policy noeviction")
	case bytes == 0:
		c.Warn("redis memory", "", "there is no maxmemory: it grows until the machine ends it", "CONFIG SET maxmemory to three quarters of its machine's memory")
	default:
		c.OK("redis memory", "", "%s of at most %s, %s", c.info["used_memory_human"], humanize.IBytes(bytes), policy)
	}
}

func (c *redisCheck) when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func (c *redisCheck) right() string {
	if c.Redundancy == Stream {
		return "noeviction"
	}
	return "volatile-lru"
}

// setting is a setting of the Redis; "" if it does not show it. Managed Redis services refuse CONFIG, and show the most
// important settings in INFO.
func (c *redisCheck) setting(ctx context.Context, name string) string {
	if values, err := c.client.ConfigGet(ctx, name).Result(); err == nil {
		return values[name]
	}
	return c.info[strings.ReplaceAll(name, "-", "_")]
}

// persistence says what a crash of Redis costs: in the mode stream, follows that wait in it.
func (c *redisCheck) persistence(ctx context.Context) {
	if c.Redundancy != Stream {
		c.OK("redis persistence", "", "what it holds can be made again from the store")
		return
	}
	only, sync := c.setting(ctx, "appendonly"), c.setting(ctx, "appendfsync")
	switch {
	case only == "":
		c.Warn("redis persistence", "", "it is not shown (CONFIG GET)", "in the mode stream it has to be appendonly yes and appendfsync always")
	case only != "yes":
		c.Warn("redis persistence", "", "appendonly is "+only+": a crash of Redis loses follows that have not been applied to follower", "CONFIG SET appendonly yes, CONFIG SET appendfsync always, and write both into its configuration")
	case sync != "always":
		c.Warn("redis persistence", "", "appendfsync is "+sync+": a power cut may lose the last follows that have not been applied to follower", "CONFIG SET appendfsync always, and write it into its configuration")
	default:
		c.OK("redis persistence", "", "appendonly, appendfsync always")
	}
}

func (c *redisCheck) clock(ctx context.Context) {
	began := time.Now()
	at, err := c.client.Time(ctx).Result()
	if err != nil {
		return // a hint only
	}
	half := time.Since(began) / 2
	ahead := at.Sub(began.Add(half))
	if ahead.Abs() > time.Second+half {
		c.Warn("redis clock", "", fmt.Sprintf("it is %s ahead of this machine's", ahead.Round(time.Millisecond)), "have NTP set the clocks of all machines")
		return
	}
	c.OK("redis clock", "", "%s ahead of this machine's", ahead.Round(time.Millisecond))
}

func (c *redisCheck) encryption() {
	options, err := redisOptions(c.Redis)
	switch {
	case err != nil:
	case options.TLSConfig != nil:
		c.OK("redis encryption", "", "TLS")
	case !slices.ContainsFunc(options.Addrs, func(a string) bool { return !doctor.IsLocal(a) }):
		c.OK("redis encryption", "", "none, on this machine")
	default:
		c.Warn("redis encryption", "", "the connection is in the clear", "write rediss:// instead of redis://, unless nobody can listen in that network")
	}
}
