package cluster

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/cache/rediscache"
	"kith/storage/events"
	"kith/storage/feed/recent"
	"kith/storage/notify"
	"kith/storage/sqlstore"
)

// Caches are the caches between a gateway and its store, and the store as a decorator that reports
// every write to them. Without any cache, everything is the store itself.
type Caches struct {
	store *sqlstore.Store
	bus   *events.Bus
	local *localcache.Cache // nil: nothing is kept in this process
	redis *rediscache.Cache // nil: nothing is kept in Redis
	feed  *recent.Follower  // nil: nothing is kept for home feeds

	client redis.UniversalClient // through which the changes of other processes arrive; nil: there is none

	arrived  reportedRows // the last rows that were reported to the caches
	unlogged bool         // nobody else reports what this process has written, if it is killed before it has
	doubts   atomic.Int64 // reports of commits without an answer that are still to be made
	own      *presence
	stopBus  func()

	// Writer is the store for writers, and for all code that propagates rows to their other side.
	Writer storage.Store
}

// CacheConfig configures the caches of a process.
type CacheConfig struct {
	Store      *sqlstore.Store
	Bus        *events.Bus
	Redis      *Redis
	Bytes      uint64        // in this process; 0: nothing is kept in it
	FeedBytes  uint64        // for home feeds, in addition; 0: nothing is kept for them
	Hub        *events.Hub   // of FeedBytes
	Logger     *slog.Logger  // of FeedBytes
	FeedLate   time.Duration // how late posts may become known; 0: a minute
	Registerer prometheus.Registerer
}

// OpenCaches makes the caches of a process. The cache in memory is switched on once [Caches.Run]
// hears of changes.
func (d Config) OpenCaches(cfg CacheConfig) (*Caches, error) {
	c := &Caches{store: cfg.Store, bus: cfg.Bus, arrived: newReportedRows()}
	if cfg.Redis != nil {
		c.client = cfg.Redis.client
	}
	c.unlogged = c.client != nil && d.Redundancy != Binlog
	var source storage.Snapshots = cfg.Store
	var err error
	report := func(users []storage.UserID) { corrected(cfg.Bus, users) }
	if c.redis, err = d.cacheOf(cfg.Redis, cfg.Store, report, cfg.Registerer); err != nil {
		return nil, err
	}
	if c.redis != nil {
		source = c.redis
	}
	if cfg.Bytes > 0 || c.redis != nil {
		c.local = localcache.New(localcache.Config{
			Source: source, Rows: cfg.Store, Store: cfg.Store, ShardOf: cfg.Store.ShardOf, Packer: cfg.Store, Bytes: cfg.Bytes, Metrics: localcache.NewMetrics(cfg.Registerer),
		})
		c.local.Switch(localcache.Off)
	}
	if cfg.FeedBytes > 0 {
		c.feed = &recent.Follower{Posts: recent.New(cfg.FeedBytes, time.Now), Source: cfg.Store, Hub: cfg.Hub, Logger: cfg.Logger, Late: cfg.FeedLate}
		c.feed.Register(cfg.Registerer)
	}
	c.Writer = notify.Watch(cfg.Store, c.wrote)
	c.own = newPresence(cfg.Store)
	c.own.vanished = c.vanished
	c.stopBus = InBackground(c.bus.Run)
	return c, nil
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

// Attend announces a process beside the gateways before it begins. If they do not hear of what it writes, it waits until they
// know of it: a gateway must not assume that it is alone. Attend returns a function that keeps the announcement alive until the
// context is done.
func (c *Caches) Attend(ctx context.Context, heard bool) (run func(context.Context)) {
	if heard {
		c.own.alone(ctx) // no need to wait
	} else {
		c.own.enter(ctx)
	}
	return func(ctx context.Context) { c.own.watch(ctx, func(bool) {}) }
}

// Reader is the store from which requests read.
func (c *Caches) Reader() storage.Reader {
	if c.local == nil {
		return c.store
	}
	return c.local
}

// FeedStore is what home feeds read: posts as requests read them, and their places.
type FeedStore struct {
	storage.Reader
	store *sqlstore.Store
}

// Shards is how many shards the store has.
func (f FeedStore) Shards() int { return f.store.Shards() }

// FeedStore is what home feeds read.
func (c *Caches) FeedStore() FeedStore { return FeedStore{c.Reader(), c.store} }

// RecentPosts is where recent posts are in time; nil if nothing is kept for home feeds.
func (c *Caches) RecentPosts() *recent.Posts {
	if c.feed == nil {
		return nil
	}
	return c.feed.Posts
}

// Exact reads from the store itself, and reports to the caches what it has read.
func (c *Caches) Exact() storage.Reader { return localcache.NewFresh(c.store, c.Arrived) }

// wrote reports a write of this process to all caches and subscriptions.
func (c *Caches) wrote(ctx context.Context, w notify.Write) {
	if c.redis != nil {
		c.redis.Changed(ctx, changes(w), changedPosts(w)...) // first, otherwise the cache in memory would read the old value
	}
	c.heard(ctx, w)
}

// heard reports a write of this process to all except Redis.
func (c *Caches) heard(ctx context.Context, w notify.Write) {
	c.doubt(w.Doubted)
	if c.local != nil {
		c.local.Wrote(w.Rows, w.All(), w.Counts)
		c.local.PostsChanged(w.Posts)
	}
	var list []events.Event
	for _, id := range w.Users {
		if one := w.Counts[id]; one.Before == one.Counts.Version { // otherwise the profile is unchanged
			list = append(list, events.User(id).Since(one.Counts.Version))
		}
	}
	for _, id := range w.Counted {
		list = append(list, events.Counts(id).Since(w.Counts[id].Counts.Version))
	}
	reported := make(map[storage.PostID]bool, len(w.Published)+len(w.Deleted))
	for _, p := range w.Published {
		reported[p.PostID] = true
		if c.feed != nil {
			c.feed.Posts.Add(p) // before the writer gets its answer
		}
		list = append(list, events.Published(p))
	}
	for _, id := range w.Deleted {
		reported[id] = true
		if c.feed != nil {
			c.feed.Posts.Remove(id)
		}
		list = append(list, events.Deleted(id))
	}
	for _, id := range w.Posts {
		if !reported[id] {
			reported[id] = true
			list = append(list, events.Changed(id))
		}
	}
	for _, id := range w.Commented {
		list = append(list, events.Commented(id))
	}
	c.bus.Send(ctx, list...)
	c.arrived.remember(w.Rows)
}

// changes lists the users whom a write has changed, with the counts that it has left, if they are
// at hand. Without counts, anything about a user may have changed.
func changes(w notify.Write) []storage.UserChange {
	list := make([]storage.UserChange, 0, len(w.Rows)+len(w.Users))
	for _, r := range w.Rows {
		owner := r.Side.Owner(r.Edge.Pair())
		one := w.Counts[owner]
		one.User, one.Forward, one.Inverse = owner, r.Side == storage.Forward, r.Side == storage.Inverse
		list = append(list, one)
	}
	for _, id := range w.All() {
		one, counted := w.Counts[id]
		one.User, one.Forward, one.Inverse = id, !counted, !counted
		list = append(list, one)
	}
	return list
}

// changedPosts lists the posts that a write has changed, each once, including those that were
// favorited.
func changedPosts(w notify.Write) (list []storage.PostVersion) {
	listed := make(map[storage.PostID]bool, len(w.Posts))
	add := func(id storage.PostID) {
		if !listed[id] {
			listed[id] = true
			list = append(list, storage.PostVersion{PostID: id})
		}
	}
	for _, id := range w.Posts {
		add(id)
	}
	for _, r := range w.Rows {
		if r.Side == storage.FavoriteInbox {
			add(r.Edge.Pair().PostID())
		}
	}
	return list
}

// Arrived reports to the caches rows that were read from the store itself: later answers must not be
// older. It reports each row once: this process may have written the row, and reads that wait for
// it and subscriptions may read it again and again.
func (c *Caches) Arrived(ctx context.Context, rows []storage.Row) {
	if c.redis == nil && c.local == nil {
		return
	}
	if rows = c.arrived.fresh(rows); len(rows) == 0 {
		return
	}
	if c.redis != nil {
		w := notify.Write{Rows: rows}
		c.redis.Changed(ctx, changes(w), changedPosts(w)...)
	}
	if c.local != nil {
		c.local.Expect(rows)
	}
	c.arrived.remember(rows)
}

// Hearing configures how a gateway learns of changes.
type Hearing struct {
	Hub *events.Hub

	// SelfSufficient means that the gateway itself sees all changes while it is the only one on its
	// store.
	SelfSufficient bool

	// WarmUp reads the users who are followed most into memory, before anybody asks for them.
	WarmUp bool

	// Started is called once other gateways know of this one.
	Started func()
	Logger  *slog.Logger
}

// Run keeps the caches in the memory of this process right until the context is done. The cache is on
// while the events of all other gateways reach this one, or while there are no others.
func (c *Caches) Run(ctx context.Context, h Hearing) {
	var running sync.WaitGroup
	defer running.Wait()
	alone := c.own.enter(ctx)
	if c.local != nil {
		defer c.local.Close()
		var numbered func()
		if h.WarmUp && c.local.MaxBytes() > 1 {
			warmUp := c.local.WarmUp(c.store, h.Logger)
			numbered = func() { running.Go(func() { warmUp(ctx) }) }
		}
		running.Go(func() {
			c.local.Number(ctx, c.store, int(c.local.MaxBytes()/directoryShare/8), h.Logger, numbered)
		})
		running.Go(c.local.Follow(ctx, h.Hub))
	}
	if c.feed != nil {
		running.Go(c.feed.Start(ctx))
	}

	var mu sync.Mutex
	hearing, told := false, true
	change := func(what *bool, is bool) {
		mu.Lock()
		defer mu.Unlock()
		*what = is
		if c.local != nil {
			mode := c.mode(hearing, alone && h.SelfSufficient)
			c.local.Switch(mode)
			isOn := mode == localcache.On
			settled := what == &alone && c.own.others >= 0 // once a second
			if settled && isOn != told && c.local.MaxBytes() > 1 {
				told = isOn
				c.tell(ctx, h.Logger, isOn, c.own.others)
			}
		}
		if c.feed != nil {
			c.feed.Hearing(hearing || alone)
		}
	}
	c.bus.OnHearing(func(is bool) { change(&hearing, is) })
	h.Started()
	c.own.watch(ctx, func(is bool) { change(&alone, is) })
}

// tell logs that nothing is kept in the memory of this process, and why, or that it is again. others is how many other processes
// use the store.
func (c *Caches) tell(ctx context.Context, logger *slog.Logger, isOn bool, others int) {
	reason := "the events of other processes do not arrive from Redis"
	switch {
	case isOn:
		logger.InfoContext(ctx, "users and lists are kept in memory again")
		return
	case c.client == nil && others > 0:
		reason = "other processes use the store, and without --redis their changes are not heard of"
	case c.client == nil:
		reason = "another process writes the followers, and without --redis its changes are not heard of"
	}
	logger.InfoContext(ctx, "nothing is kept in memory: every request reads the store", "reason", reason)
}

// mode is what the cache of this process may do. hearing means that the others' events arrive, and
// therefore that Redis answers.
func (c *Caches) mode(hearing, alone bool) localcache.Mode {
	switch {
	case c.local.MaxBytes() > 1 && (hearing || alone):
		return localcache.On
	case c.redis != nil && hearing:
		return localcache.Through
	}
	return localcache.Off
}

// directoryShare: the numbers of users may take this fraction of a cache's size.
const directoryShare = 4
