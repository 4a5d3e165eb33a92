package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/cache/rediscache"
	"kith/storage/epoch"
	"kith/storage/events"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
)

// Caches are the caches between a gateway and its store, which reports every write to them.
type Caches struct {
	cfg   CacheConfig
	mode  string // of redundancy
	store Store
	bus   *events.Bus
	local *localcache.Cache // nil: nothing is kept in this process
	redis *rediscache.Cache // nil: nothing is kept in Redis
	clock *epoch.Clock      // of the Redis through which the changes of other processes arrive; nil: there is none
	feed  *recent.Follower  // nil: nothing is kept for home feeds

	way     way
	alone   atomic.Bool  // there are no other processes
	doubts  atomic.Int64 // reports of commits without an answer that are still to be made
	own     *presence
	stopBus func()
}

// CacheConfig configures the caches of a process.
type CacheConfig struct {
	Store      Store
	Bus        *events.Bus
	Hub        *events.Hub // of the bus; nil: this process keeps nothing in memory
	Redis      *Redis
	Bytes      uint64        // in this process; 0: nothing is kept in it
	FeedBytes  uint64        // for home feeds, in addition; 0: nothing is kept for them
	FeedLate   time.Duration // how late posts may become known; 0: a minute
	Silent     bool          // writes of this process to the store are not reported one by one
	Replicates bool          // this process runs the replicator of the modes stream and binlog
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	// Follow makes what follows the servers' logs. Defaults to binlogs.
	Follow func(binlog.Config) Logs
}

// OpenCaches makes the caches of a process. The cache in memory is switched on once [Caches.Run]
// hears of changes.
func (d Config) OpenCaches(cfg CacheConfig) *Caches {
	if cfg.Follow == nil {
		cfg.Follow = func(cfg binlog.Config) Logs { return binlog.New(cfg) }
	}
	c := &Caches{cfg: cfg, mode: d.Redundancy, store: cfg.Store, bus: cfg.Bus}
	if cfg.Redis != nil && cfg.Redis.client != nil {
		c.clock = epoch.NewClock(cfg.Redis.client, cfg.Redis.runs, "kith:"+cfg.Store.UUID())
	}
	c.way = d.way(c.clock != nil, cfg.Store.HasLog(), cfg.Replicates)
	var source storage.Bundler = cfg.Store
	if d.RedisCache && c.clock != nil {
		c.redis = rediscache.New(c.clock, cfg.Store, func(users []storage.UserID) { cfg.Bus.Send(context.Background(), missed(users)) }, cfg.Registerer)
		source = c.redis
	}
	if cfg.Bytes > 0 {
		c.local = localcache.New(localcache.Config{
			Source: source, Store: cfg.Store, ShardOf: cfg.Store.ShardOf, Packer: cfg.Store, Bytes: cfg.Bytes, Metrics: localcache.NewMetrics(cfg.Registerer),
		})
		c.local.Switch(false)
	}
	if cfg.FeedBytes > 0 {
		c.feed = &recent.Follower{Posts: recent.New(cfg.FeedBytes, time.Now), Source: cfg.Store, Hub: cfg.Hub, Logger: cfg.Logger, Late: cfg.FeedLate}
		c.feed.Register(cfg.Registerer)
	}
	if !cfg.Silent {
		cfg.Store.OnCommit(c.wrote)
	}
	c.own = newPresence(cfg.Store)
	c.own.vanished, c.own.unheard = c.vanished, c.bus.Unheard
	c.stopBus = InBackground(c.bus.Run)
	return c
}

// Close sends what has not been sent to the other gateways yet, for a second at most. If something has not been reported then,
// this process does not give its lease back, so that the others forget everything.
func (c *Caches) Close() {
	behind := c.doubts.Load() > 0
	if c.redis != nil {
		behind = behind || c.redis.Behind()
		c.redis.Close()
	}
	c.stopBus()
	if !behind && !c.bus.Behind() {
		c.own.leave()
	}
}

// Attend announces a process beside the gateways before it begins, until end is called. If they do not hear of what it writes, it waits
// until they know of it: a gateway must not assume that it is alone.
func (c *Caches) Attend(ctx context.Context, heard bool) (end func()) {
	if heard {
		c.own.alone(ctx) // no need to wait
	} else {
		c.own.enter(ctx)
	}
	return c.own.stay()
}

// Reader is the store from which requests read.
func (c *Caches) Reader() storage.Bundler {
	if c.local == nil {
		return c.store
	}
	return c.local
}

// RecentPosts is where recent posts are in time; nil if nothing is kept for home feeds.
func (c *Caches) RecentPosts() *recent.Posts {
	if c.feed == nil {
		return nil
	}
	return c.feed.Posts
}

// OpenInboxes makes the inboxes, with what cfg does not have from these caches. It needs a Redis, and recent posts in memory.
func (c *Caches) OpenInboxes(cfg inbox.Config, registerer prometheus.Registerer) *inbox.Boxes {
	cfg.Clock, cfg.Counts, cfg.Recent = c.clock, c.store, c.feed.Posts
	return inbox.New(cfg, registerer)
}

// Exact reads from the store itself, and reports to the caches what it has read.
func (c *Caches) Exact() storage.Bundler { return localcache.NewStoreReader(c.store, c.Arrived) }

// wrote reports what a transaction of this process has changed to all caches and subscriptions.
func (c *Caches) wrote(ctx context.Context, w storage.Change) {
	if w.InDoubt {
		c.doubt(w)
		return
	}
	if c.redis != nil { // first, otherwise the cache in memory would read the old value
		if w.Gap {
			_ = c.redis.Empty(ctx) // what could not be done is done when Redis is back
		}
		c.redis.Changed(ctx, w.Users)
	}
	if c.local != nil {
		c.local.Apply(ctx, w, true)
	}
	if c.feed != nil {
		for _, p := range w.Posts {
			c.feed.Posts.Apply(p) // before the writer gets its answer
		}
		if w.Gap && !w.Here { // a move takes no posts away
			c.feed.ReadAgain()
		}
	}
	if w.Here && c.redis == nil { // what is read into Redis, others have read there
		return
	}
	// A row is published, by the process that propagates it, once it is on both sides.
	w.Rows = slices.DeleteFunc(slices.Clone(w.Rows), func(r storage.Row) bool { return r.Side.IsInverse() })
	c.bus.Send(ctx, w)
}

// heard reports a change that this process has not made itself to Redis, because gateways read there next, and then to everybody. If
// Redis cannot be emptied, that is an error: it is emptied later, and gateways forget everything again.
func (c *Caches) heard(ctx context.Context, w storage.Change) (err error) {
	if c.redis != nil {
		if w.Gap {
			err = c.redis.Empty(ctx)
		}
		c.redis.Changed(ctx, w.Users)
	}
	c.bus.Send(ctx, w)
	return err
}

// ForgetAll reports that anything may have changed.
func (c *Caches) ForgetAll(ctx context.Context) error { return c.heard(ctx, storage.Change{Gap: true}) }

// Arrived reports to the caches rows that were read from the store itself: later answers must not be
// older. It reports each row once: this process may have written the row, and subscriptions may read it again and again.
func (c *Caches) Arrived(ctx context.Context, rows []storage.Row) { c.arrived(ctx, false, rows) }

// Required is Arrived for what the next answer must show. It reports rows even if an event has told of them: the process that
// wrote them may not have been able to report them to Redis yet. A row does not show all that may have changed with it, so it also
// reports users of whom something older than their counts is known.
func (c *Caches) Required(ctx context.Context, what storage.Change) {
	c.arrived(ctx, true, what.Rows)
	if c.local == nil {
		return
	}
	if users := c.local.Behind(what.Users); len(users) > 0 {
		if c.redis != nil {
			c.redis.Changed(ctx, users)
		}
		c.local.Apply(ctx, storage.Change{Users: users}, true)
	}
}

func (c *Caches) arrived(ctx context.Context, required bool, rows []storage.Row) {
	if c.local == nil { // then this process reads nothing from Redis
		return
	}
	if rows = c.local.Unreported(required, rows); len(rows) == 0 {
		return
	}
	if c.redis != nil {
		var change storage.Change
		for _, r := range rows {
			change.AddRow(r.Side, r.Edge)
		}
		c.redis.Changed(ctx, change.Users)
	}
	c.local.RequireRows(rows)
}

// Run keeps the caches in the memory of this process right until the context is done. The cache is on while the events of all
// other gateways reach this one, or while there are no others; and for some shards alone, while only their binlogs are followed.
// started is called once other gateways know of this one.
func (c *Caches) Run(ctx context.Context, started func()) {
	var running sync.WaitGroup
	defer running.Wait()
	alone := c.own.enter(ctx)
	if c.local != nil {
		defer c.local.Close()
		warmUp := c.local.WarmUp(c.store, c.cfg.Logger)
		numbered := func() { running.Go(func() { warmUp(ctx) }) }
		running.Go(func() {
			c.local.Number(ctx, c.store, int(c.local.MaxBytes()/directoryShare/8), c.cfg.Logger, numbered)
		})
		running.Go(c.local.Follow(ctx, c.cfg.Hub))
	}
	if c.feed != nil {
		running.Go(c.feed.Start(ctx))
	}

	var mu sync.Mutex
	hearing, told := false, true
	var parts []bool // which shards are heard, if not all are
	change := func(what *bool, is bool) {
		isCut := what == &hearing && hearing && (!is || parts != nil)
		*what = is
		c.alone.Store(alone)
		hears := hearing && !c.own.unheardBeside.Load()
		if c.local != nil {
			isOn := hears || alone && c.way.alone
			if alone && c.way.alone {
				c.local.SwitchShards(nil)
			} else {
				c.local.SwitchShards(parts)
			}
			c.local.Switch(isOn)
			if isCut { // what others wrote before they left may have been on its way
				c.local.Forget()
			}
			settled := what == &alone && c.own.others >= 0 // once a second
			if settled && isOn != told {
				told = isOn
				c.tell(ctx, isOn)
			}
		}
		if c.feed != nil {
			c.feed.Hearing(hears && c.way.by == byRedis || alone) // binlogs do not show when a post was published
		}
	}
	c.bus.OnHearing(func(is bool) {
		mu.Lock()
		defer mu.Unlock()
		change(&hearing, is)
	})
	if c.way.by == byBinlogs {
		running.Go(func() {
			c.followLogs(ctx, func(shards []bool) {
				mu.Lock()
				defer mu.Unlock()
				if parts = shards; !slices.Contains(shards, false) {
					parts = nil
				}
				change(&hearing, slices.Contains(shards, true))
			})
		})
	}
	started()
	c.own.watch(ctx, func(is bool) {
		mu.Lock()
		defer mu.Unlock()
		change(&alone, is)
	})
}

// tell logs that nothing is kept in the memory of this process, and why, or that it is again.
func (c *Caches) tell(ctx context.Context, isOn bool) {
	if isOn {
		c.cfg.Logger.InfoContext(ctx, "cache on: users and lists are kept in memory again")
		return
	}
	reason := map[source]string{
		nothing:   "other processes use the store, and without --redis their changes are not heard of",
		byRedis:   "the events of other processes do not arrive from Redis, or those of another gateway do not get there",
		byBinlogs: "other processes use the store, there is no --redis, and the servers' binlogs, which also show their changes, are not followed (yet)",
	}[c.way.by]
	c.cfg.Logger.InfoContext(ctx, "cache off: every request reads the databases", "reason", reason)
}

// directoryShare: the numbers of users may take this fraction of a cache's size.
const directoryShare = 4
