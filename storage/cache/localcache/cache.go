// Package localcache keeps in a gateway's memory what is read often: users and posts with their
// counts, and whole lists of followings and followers as [idset.List]s. A [Cache] reads like a store,
// except that it may leave out tombstones of requests and favorites. It is bounded in bytes, and keeps what is read again, so that it finds hot users by itself.
//
// The cache stays right because every change is applied to it ([Cache.Apply]): by the writers of this gateway before
// they answer, and those of all other gateways as they come ([Cache.Follow]). It forgets
// a user or a post when it changes, unless the change has its values. It changes lists as the tables are changed: a row counts if it is
// newer than what is known of its pair, so rows may come late, twice, and in any order. If events
// may be missing, it forgets everything. A cache that cannot hear of others' changes must not be on
// ([Cache.Switch]).
//
// If a change comes while a read of the store is under way, the result is not older than the
// change: a changed user is read again, and the change is applied to a changed list.
package localcache

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Cache reads from memory what it has, and the rest from the stores below.
type Cache struct {
	storage.Answering // of what is kept

	source  storage.Bundler // of users, posts and lists
	store   storage.Bundler
	packer  Packer // nil: no packing
	metrics *Metrics
	clock   func() time.Time // of the machine, in whose time rows were written
	now     func() time.Time // for ages: it goes on evenly while the machine's clock is set
	shardOf func(storage.UserID) int
	longest int // lists up to here are kept once they are first asked for
	packed  int // lists up to here are kept once they are asked for more often

	on        atomic.Bool
	heard     atomic.Pointer[[]bool] // of which shards; nil: of all
	kept      *entries
	directory atomic.Pointer[idset.Directory]
	stripes   [64]stripe
	seed      maphash.Seed

	handles      fills[string, storage.UserID]
	lists        [2]fills[storage.UserID, *list] // by side
	recommenders fills[storage.UserID, idset.Recommender]
	reads        [kinds]interface { // the same, by kind
		abandon(key)
		abandonAll()
	}

	profiles  source[storage.UserID, storage.Profile]
	blocks    source[storage.UserID, []storage.UserID]
	posts     source[storage.PostID, storage.Post]
	rows      *answers[storage.RowsQuery, []storage.Edge]                 // all requests or favorites of a user, if they are few
	edges     [len(storage.AllSides)]*answers[storage.Pair, storage.Edge] // of requests and favorites
	pages     [len(storage.AllSides)]*answers[storage.PageQuery, []storage.Edge]
	postPages *answers[storage.PlaceQuery, []storage.Post]

	unkept    atomic.Int64  // answers of users without a version
	forgotten atomic.Uint32 // how often everything was
	names     atomic.Uint32 // how often somebody may have got a handle
	stamps    stamps

	reported reported
	building sync.Mutex // of one long list at a time

	requested atomic.Bool // whether a request has asked for anything since warming up began with the users that it reads

	renewAfter atomic.Int64 // µs: when long lists may be renewed

	background *background
}

// Packer keeps long lists packed beside their rows, so that [storage.SnapshotLookups] reads them faster.
// The answers are the same.
type Packer interface {
	// Pack packs an owner's list of the Forward or the Inverse side, or packs it again if too much
	// has changed since. It does nothing if the list is not worth it, or while another packer works
	// on the list. It may read the whole list. It can be interrupted and repeated at any point,
	// while others read and write.
	Pack(ctx context.Context, side storage.Side, owner storage.UserID) error
}

// Config says what a cache reads from and how much it may keep.
type Config struct {
	// Store is the store.
	Store storage.Bundler
	// Source is where users, posts and short lists are read from: the store, or a cache between it and this one. Defaults to Store.
	Source storage.Bundler
	// ShardOf is the shard from which what belongs to a user is read. Defaults to 0 for everybody.
	ShardOf func(storage.UserID) int
	// Packer packs long lists in the store once they have been read. Defaults to none.
	Packer Packer
	// Bytes bounds what is kept, the directory of users included.
	Bytes uint64
	// Metrics counts. Defaults to none.
	Metrics *Metrics
	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// New makes a cache, which is on.
func New(cfg Config) *Cache {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ShardOf == nil {
		cfg.ShardOf = func(storage.UserID) int { return 0 }
	}
	if cfg.Source == nil {
		cfg.Source = cfg.Store
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	c := &Cache{
		source: cfg.Source, store: cfg.Store, packer: cfg.Packer, metrics: cfg.Metrics, clock: cfg.Now, now: evenly(cfg.Now), shardOf: cfg.ShardOf, seed: maphash.MakeSeed(),
		background: newBackground(), reported: newReported(), longest: shortList,
		packed: max(shortList, int(cfg.Bytes/longShare/bytesAnEdge)),
	}
	c.keeps()
	c.reads[profileKind], c.reads[blocksKind], c.reads[recommenderKind], c.reads[postKind], c.reads[handleKind] = c.profiles.fills, c.blocks.fills, &c.recommenders, c.posts.fills, &c.handles
	for _, side := range listSides {
		c.reads[listKind(side)] = &c.lists[side]
	}
	c.kept = newKept(cfg.Bytes, c.now)
	c.directory.Store(idset.NewDirectory())
	c.metrics.cache = c
	c.on.Store(true)
	return c
}

// evenly is a clock that is the same now and is not set later.
func evenly(clock func() time.Time) func() time.Time {
	began := clock()
	return func() time.Time { return began.Add(clock().Sub(began)) } // the difference is that of monotonic readings
}

const (
	// shortList is how long a list may be to be kept when it is first asked for: reading it takes
	// little longer than reading a page of it.
	shortList = 1000
	// longShare: one list may take this fraction of the cache.
	longShare   = 8
	bytesAnEdge = 16

	// overhead is what an entry takes besides its value.
	overhead = 176

	// keep is how long an entry is wrong at most that events do not update for some reason.
	keep = 10 * time.Minute
	// keepAbsence is the same for what is not there: whoever has just made it looks for it.
	keepAbsence = time.Minute
	// keepUnchanged is how long a list is kept while the version of its owner's counts says that it has not changed. Rows
	// that were changed by hand raise no version.
	keepUnchanged = time.Hour
)

// key names an entry.
type key struct {
	kind   kind
	id     storage.UserID
	number int64  // of a post, whose author is id
	stamp  uint32 // of the author of a post
}

func profileKey(id storage.UserID) key     { return key{kind: profileKind, id: id} }
func blocksKey(id storage.UserID) key      { return key{kind: blocksKind, id: id} }
func recommenderKey(id storage.UserID) key { return key{kind: recommenderKind, id: id} }

type kind uint8

const (
	profileKind kind = iota
	blocksKind
	forwardKind
	inverseKind
	recommenderKind
	postKind
	handleKind
	answerKind
	kinds
)

func (k kind) String() string {
	return [...]string{"user", "blocks", "following", "follower", "recommender", "post", "handle", "answer"}[k]
}

// listKind is the kind of lists of a side, which must be Forward or Inverse.
func listKind(side storage.Side) kind {
	if side == storage.Inverse {
		return inverseKind
	}
	return forwardKind
}

// entry is what is kept of one key. It is immutable.
type entry interface {
	bytes() int
	expiry() time.Time
}

// lifetime is how long an entry is kept, with jitter, so that entries read together are not read
// again together.
type lifetime struct{ until time.Time }

func (l lifetime) expiry() time.Time { return l.until }

func (c *Cache) lives(d time.Duration) lifetime {
	return lifetime{c.now().Add(d - rand.N(d/5))}
}

// livesIf is how long a user or a post is kept, if it is there or if it is not.
func (c *Cache) livesIf(found bool) lifetime {
	if found {
		return c.lives(keep)
	}
	return c.lives(keepAbsence)
}

// stripe is a lock on some of the keys: under it, one step both replaces an entry and notifies a read
// under way of a change.
type stripe struct {
	sync.Mutex
	_ [56]byte // alone on its cache line
}

func (c *Cache) stripe(k key) *stripe {
	return &c.stripes[maphash.Comparable(c.seed, k)%uint64(len(c.stripes))]
}

// Switch turns the cache on or off. While it is off, everything is read as rows from the store, and nothing is kept.
func (c *Cache) Switch(on bool) {
	if c.on.Swap(on) != on {
		c.Forget()
	}
}

// IsOn reports whether the cache is on.
func (c *Cache) IsOn() bool { return c.on.Load() }

// SwitchShards says of which shards all changes reach the cache, by their ordinals; nil: of all. Of the others everything is read from the
// store, and nothing is kept.
func (c *Cache) SwitchShards(shards []bool) {
	var next *[]bool
	if shards != nil {
		next = &shards
	}
	if was := c.heard.Swap(next); was != next && (was == nil || next == nil || !slices.Equal(*was, *next)) {
		c.Forget()
	}
}

// hears reports whether all changes of what belongs to a user reach the cache; of everybody, if there is no user.
func (c *Cache) hears(id storage.UserID) bool {
	shards := c.heard.Load()
	if shards == nil || id == 0 {
		return shards == nil
	}
	of := c.shardOf(id)
	return of < len(*shards) && (*shards)[of]
}

// MaxBytes is how much may be kept.
func (c *Cache) MaxBytes() uint64 { return c.kept.bytes }

// Forget forgets everything, including what is being read.
func (c *Cache) Forget() {
	c.reported.rows.Purge() // a row may come back as it was
	c.lockAll()
	for _, reads := range c.reads[:answerKind] {
		reads.abandonAll()
	}
	c.forgotten.Add(1) // no read of an answer is found from now on: the version may come again, after a restore
	c.kept.flat.clear()
	c.kept.large.InvalidateAll()
	c.unlockAll()
	c.metrics.forgotten.Inc()
}

func (c *Cache) lockAll() {
	for i := range c.stripes {
		c.stripes[i].Lock()
	}
}

func (c *Cache) unlockAll() {
	for i := range c.stripes {
		c.stripes[i].Unlock()
	}
}

// Close ends the reads in the background, and waits for them, so that closing the store afterwards interrupts nothing. From
// then on only answers that are kept are given.
func (c *Cache) Close() {
	c.background.close()
	c.kept.large.StopAllGoroutines()
}

var _ storage.Bundler = (*Cache)(nil)
