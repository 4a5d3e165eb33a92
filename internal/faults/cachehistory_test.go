package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestCacheHistory is the short schedule; see [TestLongCacheHistory].
func TestCacheHistory(t *testing.T) {
	t.Parallel()
	t.Run("binlog", func(t *testing.T) {
		cacheHistory{mode: "binlog", shards: 2, calm: time.Second, faults: 1, freeze: time.Second / 2, viewers: 2, late: 5 * lateAtMost, pace: 4 * pace}.run(t)
	})
	t.Run("binlog without a Redis", func(t *testing.T) {
		cacheHistory{mode: "binlog", noRedis: true, shards: 2, calm: time.Second, faults: 1, freeze: time.Second / 2, viewers: 2, late: 5 * lateAtMost, pace: 4 * pace}.run(t)
	})
}

// TestLongCacheHistory lets 32 users write and look through two gateways. The gateways keep what
// they read, in memory and in a Redis. In the meantime Redis is flushed, killed, frozen and rolled
// back to old data.
//
//   - A writer sees its write at once on the gateway on which it was made, and on the other one
//     with the consistency token.
//   - What others see is too old by at most the replication's lag and 100 ms while Redis answers,
//     and by at most what docs/reference/guarantees.md says while it does not.
//   - In the end all answers are the same as those of a gateway without any cache, and Redis holds
//     only what the tables hold.
//
// Without a Redis the gateways follow the binlogs; the connections over which they do are ended, and a server is killed.
//
// In the mode stream Redis also keeps the rows that are under way. There it is not harmed.
//
//	KITH_TEST_LONG=1 KITH_TEST_SEED=… go test ./internal/faults -run TestLongCacheHistory/binlog -v
func TestLongCacheHistory(t *testing.T) {
	testenv.Long(t)
	for _, h := range []cacheHistory{
		{mode: "binlog", shards: 2, calm: 15 * time.Second, faults: 5, freeze: 3 * time.Second, viewers: onlookers, late: lateAtMost, pace: pace},
		{mode: "sync", shards: 1, calm: 15 * time.Second, faults: 5, freeze: 3 * time.Second, viewers: onlookers, late: lateAtMost, pace: pace},
		{mode: "stream", shards: 2, calm: 15 * time.Second, viewers: onlookers, late: lateAtMost, pace: pace},
		{mode: "binlog", noRedis: true, shards: 2, calm: 15 * time.Second, faults: 5, viewers: onlookers, late: lateAtMost, pace: pace},
	} {
		t.Run(h.name(), h.run)
	}
}

// cacheHistory is how much happens.
type cacheHistory struct {
	mode    string
	noRedis bool
	shards  int
	calm    time.Duration // before the faults, and the same time again among them
	faults  int           // of each kind, with kinds in turn
	freeze  time.Duration // how much longer than a second Redis may be frozen
	viewers int           // for how many users everything is compared at the end
	late    time.Duration // how old answers may be while Redis answers; beside other tests the machine has other work
	pace    time.Duration // how long an onlooker rests between two actions, on average
}

func (h cacheHistory) name() string {
	if h.noRedis {
		return h.mode + "_alone"
	}
	return h.mode
}

func (h cacheHistory) run(t *testing.T) {
	seed := seedOf(t)
	servers, redis := testenv.SharedMariaDB(t, h.shards), (*testenv.RedisServer)(nil)
	if h.noRedis {
		for i := range servers { // which are killed
			servers[i] = testenv.MariaDB(t)
		}
	} else {
		redis = testenv.Redis(t)
	}
	d := deployCached(t, servers, redis, h.mode, everybodyThere)
	j := newJournal()
	watchers := make([]*onlooker, onlookers)
	for i := range watchers {
		watchers[i] = d.onlooker(t, j, firstOnlooker+int64(i), seed)
		must.OK(t, watchers[i].follow(t.Context(), i%2, 1+int64(i%stars))) // users who follow nobody are suggested popular users
	}
	lags, stopProbes := d.measureWindows(t, probeFrom, probeTo)
	stopLoad := d.live(t, watchers, h.pace)
	began := time.Now()
	time.Sleep(h.calm)
	calmUntil := time.Now()
	outages := d.harm(t, h, rand.New(rand.NewPCG(seed, 1<<32)))
	stopLoad()
	t.Logf("%d users wrote and looked for %v: %v", onlookers, time.Since(began).Round(time.Millisecond), total(watchers))
	stopProbes()
	d.quiet(t, newHistory())
	if !h.noRedis {
		d.allReported(t)
	}
	d.allWell(t)
	j.holds(t, h.late, lags, calmUntil, outages)
	var viewers []int64
	for _, w := range watchers[:h.viewers] {
		viewers = append(viewers, w.me)
	}
	d.agree(t, viewers)
	if !h.noRedis {
		d.redisAgrees(t)
	}
	d.wasWorthIt(t)
}

// live runs all onlookers, each at a pace, until it is stopped.
func (d *cachedDeployment) live(t *testing.T, watchers []*onlooker, pace time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, o := range watchers {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := o.step(context.WithoutCancel(ctx)); err != nil {
					t.Errorf("user %d: %v", o.me, err)
					return
				}
				time.Sleep(time.Duration(o.random.Int64N(int64(2 * pace))))
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}

// pace is that of the long schedule. Without it the machine would be so busy that nothing came in time.
const pace = 120 * time.Millisecond

// redisOutage is a time in which Redis did not work properly, and what was done to it.
type redisOutage struct {
	span
	what string
}

// harm does everything to Redis that a history contains, and returns when.
func (d *cachedDeployment) harm(t *testing.T, h cacheHistory, random *rand.Rand) (outages []redisOutage) {
	t.Helper()
	if h.faults == 0 {
		time.Sleep(h.calm)
		return nil
	}
	if h.noRedis {
		return d.harmLogs(t, h, random)
	}
	aside := filepath.Join(t.TempDir(), "old.rdb")
	d.save(t)
	copyTo(t, d.dump(), aside)
	some := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	kinds := []struct {
		what string
		do   func()
	}{
		{"flushed", func() { must.OK(t, d.admin(t).FlushAll(t.Context()).Err()) }},
		{"restarted with its newest data", func() {
			d.save(t)
			d.redis.Kill(t)
			time.Sleep(some(400 * time.Millisecond))
			d.redis.Restart(t)
		}},
		{"rolled back", func() {
			d.redis.Kill(t)
			copyTo(t, aside, d.dump())
			d.redis.Restart(t)
		}},
		{"stood still", func() {
			d.redis.Freeze(t)
			time.Sleep(time.Second + some(h.freeze)) // after two seconds gateways give up on it
			d.redis.Thaw(t)
		}},
	}
	for range h.faults {
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			from := time.Now()
			kind.do()
			outages = append(outages, redisOutage{span{from, time.Now()}, kind.what})
			time.Sleep(200*time.Millisecond + some(h.calm/4))
		}
		if h.faults > 1 && random.IntN(3) == 0 {
			d.save(t)
			copyTo(t, d.dump(), aside)
		}
	}
	time.Sleep(recovered)
	return outages
}

// harmLogs ends the connections over which gateways and the replicator follow the binlogs, again and again, and writes go on.
func (d *cachedDeployment) harmLogs(t *testing.T, h cacheHistory, random *rand.Rand) (outages []redisOutage) {
	t.Helper()
	for range 4 * h.faults {
		from, shard := time.Now(), random.IntN(h.shards)
		const dumps = "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'"
		check.Least(t, "connections that follow the binlog: of two gateways and a replicator", d.number(t, shard, dumps), 3)
		for d.number(t, shard, dumps) > 0 {
			connection := d.number(t, shard, "SELECT MAX(id) FROM information_schema.processlist WHERE command = 'Binlog Dump'")
			_, _ = d.shards[shard].ExecContext(t.Context(), fmt.Sprint("KILL ", connection)) // it may have ended meanwhile
		}
		time.Sleep(time.Duration(random.Int64N(int64(h.calm))))
		until(t, "all are followed again", func() bool { return d.number(t, shard, dumps) >= 3 })
		d.ready(t)
		outages = append(outages, redisOutage{span{from, time.Now()}, "was not there, and a binlog was not followed"})
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(recovered)
	return outages
}

// recovered is how long after an outage of Redis gateways may need to notice that it is back.
const recovered = 1500 * time.Millisecond

// allReported waits until every change has been reported to Redis.
func (d *cachedDeployment) allReported(t *testing.T) {
	t.Helper()
	for _, n := range d.nodes() {
		l := n.now.Load()
		until(t, l.name+" has reported everything to Redis", func() bool { return l.metric(t, "kith_redis_cache_late_users", "") == 0 })
	}
}

// wasWorthIt checks that the caches were used. Otherwise nothing has been shown.
func (d *cachedDeployment) wasWorthIt(t *testing.T) {
	t.Helper()
	for _, n := range d.gateways {
		l := n.now.Load()
		memory, redis, filled := l.metric(t, "kith_cache_hits_total", ""), 0.0, 0.0
		if d.redis != nil {
			redis, filled = l.metric(t, "kith_redis_cache_lookups_total", `outcome="hit"`), l.metric(t, "kith_redis_cache_lookups_total", `outcome="miss"`)
		}
		t.Logf("%s: %.0f keys from memory, %.0f missed; %.0f from Redis, %.0f read to fill it; forgot everything %.0f times", l.name, memory,
			l.metric(t, "kith_cache_misses_total", ""), redis, filled, l.metric(t, "kith_cache_forgotten_total", ""))
		if memory < 1000 || redis < 20 && d.redis != nil {
			t.Errorf("%s: %.0f keys were found in memory and %.0f in Redis: the test shows little", l.name, memory, redis)
		}
	}
}

// total adds up the actions of onlookers.
func total(watchers []*onlooker) map[string]int {
	sum := map[string]int{}
	for _, w := range watchers {
		for what, n := range w.counted {
			sum[what] += n
		}
	}
	return sum
}

// These bounds say how old answers may be, in addition to the lag of replication: they are those of
// docs/reference/guarantees.md.
const (
	lateAtMost   = 100 * time.Millisecond
	lateInOutage = 3100 * time.Millisecond // until an attempt that hangs is given up, and the longest pause between attempts
)

// holds checks that no answer was older than is promised.
func (j *journal) holds(t *testing.T, most time.Duration, lags *windows, calmUntil time.Time, outages []redisOutage) {
	t.Helper()
	var calm, among, within []late
	var numbers [3]int
	all := j.judge(t)
	sort := func(s sight, from time.Time) (list *[]late, number *int, bound time.Duration) {
		for _, o := range outages {
			if s.began.After(o.from) && from.Before(o.to.Add(recovered)) {
				return &within, &numbers[2], lateInOutage
			}
		}
		if s.began.Before(calmUntil) {
			return &calm, &numbers[0], most
		}
		return &among, &numbers[1], most
	}
	for _, s := range j.sights {
		_, number, _ := sort(s, s.began)
		*number++
	}
	broken := 0
	for _, l := range all {
		list, _, bound := sort(l.sight, l.missed.acked)
		*list = append(*list, l)
		if bound += lags.allowed(l.missed.acked, l.began); l.by > bound {
			if broken++; broken <= 5 {
				t.Errorf("%v: more than %v (%s); %s", l, bound.Round(time.Millisecond), when(l, outages), j.story(t, l.register))
			}
		}
	}
	check.Most(t, "sights that were older than they may be", broken, 5)
	t.Logf("lag of the other side: p50 %v, p99 %v, at most %v, %d probes", lags.lag(0.5), lags.lag(0.99), lags.lag(1), len(lags.probes))
	t.Logf("before the faults: %s", measured(calm, numbers[0]))
	t.Logf("between them: %s", measured(among, numbers[1]))
	t.Logf("while Redis was away, and %v after: %s", recovered, measured(within, numbers[2]))
}

// when says where in relation to the outages something happened.
func when(l late, outages []redisOutage) string {
	text := "before all outages"
	for _, o := range outages {
		if l.began.After(o.from) {
			text = fmt.Sprintf("Redis %s, from %v before it was asked to %v before; it was written %v before", o.what,
				l.began.Sub(o.from).Round(time.Millisecond), l.began.Sub(o.to).Round(time.Millisecond), l.by.Round(time.Millisecond))
		}
	}
	return text
}
