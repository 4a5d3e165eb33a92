// Package localcache keeps in a gateway's memory what is asked often: users with their
// counts, and whole lists of followings and followers as [idset.List]s.
// A [Cache] reads like a store. It is bounded in bytes, and decides by how often
// something is asked what stays (W-TinyLFU), so that hot users are found by themselves.
//
// What it holds is kept right by being told of every change: by the writers of this
// gateway before they answer ([Cache.Wrote]), and by the events of all the others
// ([Cache.Follow]). Users are forgotten when they change. Lists are changed as the tables
// are: a row counts if it is newer than what is known of its pair, so rows may come
// late, twice, and in any order. Where events may be missing, everything is forgotten.
// Without a way to hear of others' changes a cache must not be on ([Cache.Switch]).
//
// A read of the store that was under way when a change came is not older than it: a
// changed user is read again, and a changed list has the change made to it.
package localcache

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"kith/storage"
	"kith/storage/idset"
)

// Cache reads from memory what is there, and the rest from the stores below.
type Cache struct {
	storage.Reader // all that is not kept, packed lists among it

	source  storage.Snapshots
	below   storage.Snapshots // the store itself
	packer  storage.Packer    // nil: nobody
	metrics *Metrics
	now     func() time.Time
	longest int // lists up to here are kept when they are first asked for
	packed  int // lists up to here, when they are asked for more often

	mode       atomic.Uint32
	generation atomic.Uint64 // rises when everything is forgotten
	entries    *otter.Cache[key, entry]
	directory  atomic.Pointer[idset.Directory]
	stripes    [64]stripe
	seed       maphash.Seed

	profiles fills[storage.Profile]
	blocks   fills[[]storage.UserID]
	lists    [2]fills[*list] // by side

	told     told
	building sync.Mutex // of one long list at a time
}

// Config says what a cache reads from and how much it may keep.
type Config struct {
	// Source is where what is kept comes from: the store, or a cache between it and this.
	Source storage.Snapshots
	// Rows answers what is not kept.
	Rows storage.Reader
	// Store is the store itself, which long lists come from, and everything while the cache
	// is off. Defaults to Source.
	Store storage.Snapshots
	// Packer has long lists packed in the store, once they have been read. Defaults to
	// nobody.
	Packer storage.Packer
	// Bytes bounds what is kept, the directory of users aside.
	Bytes uint64
	// Metrics count. Defaults to nobody.
	Metrics *Metrics
	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// New makes a cache that is on.
func New(cfg Config) *Cache {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Store == nil {
		cfg.Store = cfg.Source
	}
	if cfg.Metrics == nil {
		cfg.Metrics = newMetrics()
	}
	c := &Cache{
		Reader: cfg.Rows, source: cfg.Source, below: cfg.Store, packer: cfg.Packer, metrics: cfg.Metrics, now: cfg.Now, seed: maphash.MakeSeed(),
		longest: shortList,
		packed:  max(shortList, int(cfg.Bytes/longShare/bytesAnEdge)),
	}
	c.entries = otter.Must(&otter.Options[key, entry]{
		MaximumWeight:    max(1, cfg.Bytes),
		Weigher:          func(_ key, e entry) uint32 { return uint32(min(e.bytes()+overhead, 1<<31)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[key, entry]) time.Duration { return e.Value.expiry().Sub(c.now()) }),
	})
	c.directory.Store(idset.NewDirectory())
	c.metrics.cache = c
	c.mode.Store(uint32(On))
	return c
}

const (
	// shortList is how long a list may be to be kept when it is first asked for: reading
	// it takes little longer than reading a page of it.
	shortList = 1000
	// longShare is what part of the cache one list may take.
	longShare   = 8
	bytesAnEdge = 16

	// overhead is what an entry takes besides its value.
	overhead = 160

	// What is not kept up by events for some reason is wrong for so long at most.
	keep     = time.Minute
	keepLong = 10 * time.Minute // reading a long list again is dear
)

// key names an entry.
type key struct {
	kind kind
	id   storage.UserID
}

type kind uint8

const (
	profileKind kind = iota
	blocksKind
	forwardKind
	inverseKind
	kinds
)

func (k kind) String() string {
	return [...]string{"user", "blocks", "following", "follower"}[k]
}

// listKind is the kind of lists of a side, which is Forward or Inverse.
func listKind(side storage.Side) kind {
	if side == storage.Inverse {
		return inverseKind
	}
	return forwardKind
}

// entry is what is kept of one key. It never changes.
type entry interface {
	bytes() int
	expiry() time.Time
}

// lifetime is how long an entry is kept, jittered, so that what was read together is
// not read again together.
type lifetime struct{ until time.Time }

func (l lifetime) expiry() time.Time { return l.until }

func (c *Cache) lives(d time.Duration) lifetime {
	return lifetime{c.now().Add(d - rand.N(d/5))}
}

// stripe guards the keys that fall on it: an entry is replaced, and a read that is under
// way learns of a change, in one step.
type stripe struct {
	sync.Mutex
	_ [56]byte // alone on its cache line
}

func (c *Cache) stripe(k key) *stripe {
	return &c.stripes[maphash.Comparable(c.seed, k)%uint64(len(c.stripes))]
}

// Mode is what a cache does.
type Mode uint32

const (
	// Off: everything is read as rows from the store. Nothing is kept.
	Off Mode = iota
	// Through: users and lists are read from the source, but not kept.
	Through
	// On: they are kept.
	On
)

// Switch changes what the cache does.
func (c *Cache) Switch(to Mode) {
	if Mode(c.mode.Swap(uint32(to))) != to {
		c.Forget()
	}
}

// Mode is what the cache does.
func (c *Cache) Mode() Mode { return Mode(c.mode.Load()) }

// MaxBytes is how much may be kept.
func (c *Cache) MaxBytes() uint64 { return c.entries.GetMaximum() }

// Forget forgets everything, also what is being read.
func (c *Cache) Forget() {
	for i := range c.stripes {
		c.stripes[i].Lock()
	}
	c.generation.Add(1)
	c.profiles.leaveAll()
	c.blocks.leaveAll()
	c.lists[storage.Forward].leaveAll()
	c.lists[storage.Inverse].leaveAll()
	c.entries.InvalidateAll()
	for i := range c.stripes {
		c.stripes[i].Unlock()
	}
	c.metrics.forgotten.Inc()
}

// get returns an entry of some type.
func get[E entry](c *Cache, k key) (e E, ok bool) {
	if found, there := c.entries.GetIfPresent(k); there {
		e, ok = found.(E)
	}
	return e, ok
}

// Close ends what runs in the background.
func (c *Cache) Close() { c.entries.StopAllGoroutines() }

var _ storage.Reader = (*Cache)(nil)

// detached is a context for reads on behalf of several requests: none of them ends it.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), fillTime)
}

// fillTime bounds a read that several requests may wait for.
const fillTime = 10 * time.Second
