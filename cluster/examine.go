package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/storage/doctor"
)

// ExamineRedis looks at the Redis, as far as it answers questions. inboxes means that home feeds are copied there.
func (d Config) ExamineRedis(ctx context.Context, inboxes bool) (all doctor.List) {
	if d.Redis == "" {
		all.OK("redis", "", "none is set: gateways do not share changes through it")
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
	has := map[string]string{}
	switch info, err := r.client.Info(ctx).Result(); {
	case err != nil && (d.RedisCache || inboxes): // whether Redis has lost what is kept in it shows there
		all.Fail("redis version", "", fmt.Sprintf("INFO is refused, and nothing is kept in Redis without it: %v", err), "allow INFO to its user")
	case err != nil:
		all.Warn("redis version", "", fmt.Sprintf("INFO is refused: %v", err), "allow INFO to its user, so that this can be checked")
	default:
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			has[strings.ReplaceAll(name, "_", "-")] = value
		}
		all.Version("redis version", "", has["redis-version"], [2]int{6, 2}, [2]int{7, 0}) // 6.2 has XAUTOCLAIM
	}
	if err := r.Ready(ctx); err != nil {
		all.Fail("redis writes", "", err.Error(), "give it memory, room on its disk, or its user the rights, such as +@scripting or &kith:*, whichever it names")
	} else {
		all.OK("redis writes", "", "it takes what gateways write and tell each other, and runs their scripts")
	}
	// Managed Redis services refuse CONFIG, and show the most important settings in INFO.
	for _, name := range []string{"maxmemory-policy", "maxmemory", "appendonly", "appendfsync"} {
		if values, err := r.client.ConfigGet(ctx, name).Result(); err == nil {
			has[name] = values[name]
		}
	}
	all.Needs("", has, d.redisNeeds(inboxes))
	if d.Redundancy != Stream {
		all.OK("redis persistence", "", "what it holds can be made again from the store")
	}
	began := time.Now()
	if at, err := r.client.Time(ctx).Result(); err == nil { // it is a hint only
		half := time.Since(began) / 2
		all.Clock("redis clock", "", at.Sub(began.Add(half)), half, "this machine's")
	}
	if options, err := redisOptions(d.Redis); err == nil {
		by := ""
		if options.TLSConfig != nil {
			by = "TLS"
		}
		local := !slices.ContainsFunc(options.Addrs, func(a string) bool { return !doctor.IsLocal(a) })
		all.Encryption("redis encryption", "", by, local, "write rediss:// instead of redis://")
	}
	return all
}

// redisNeeds are for a Redis that drops no data that cannot be made again. In the mode stream, these are follows that wait in it.
func (d Config) redisNeeds(inboxes bool) []doctor.Need {
	policy, lost := "volatile-lru", "it drops keys without a time to live as well, such as its id and the epoch"
	if inboxes {
		lost += ", and inboxes"
	}
	var stream []doctor.Need
	if d.Redundancy == Stream {
		policy, lost = "noeviction", lost+", and the stream"
		stream = []doctor.Need{
			{Level: doctor.Warn, Check: "redis memory", Setting: "maxmemory-policy", Fits: func(p string) bool { return p == policy || strings.HasPrefix(p, "allkeys-") },
				Why: "in the mode stream a full Redis should refuse follows rather than forget", Mend: "CONFIG SET maxmemory-policy noeviction"},
			{Level: doctor.Warn, Check: "redis persistence", Setting: "appendonly", Value: "yes",
				Why: "a crash of Redis loses follows that have not been applied to follower", Mend: "CONFIG SET appendonly yes, CONFIG SET appendfsync always, and write both into its configuration"},
			{Level: doctor.Warn, Check: "redis persistence", Setting: "appendfsync", Value: "always",
				Why: "a power cut may lose the last follows that have not been applied to follower", Mend: "CONFIG SET appendfsync always, and write it into its configuration"},
		}
	}
	return append(stream,
		doctor.Need{Level: doctor.Fail, Check: "redis memory", Setting: "maxmemory-policy", Fits: func(p string) bool { return !strings.HasPrefix(p, "allkeys-") },
			Why: lost, Mend: "CONFIG SET maxmemory-policy " + policy},
		doctor.Need{Level: doctor.Warn, Check: "redis memory", Setting: "maxmemory", Fits: func(bytes string) bool { return bytes != "0" && bytes != "" },
			Why: "with no maxmemory it can grow until the kernel ends it", Mend: "CONFIG SET maxmemory to three quarters of its machine's memory"})
}
