package localcache

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// No value is kept for longer than it may be wrong, nor for much less.
func TestLifetimes(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &Cache{now: func() time.Time { return now }}
	for range 1000 {
		d := c.lives(keep).expiry().Sub(now)
		must.That(t, d <= keep && d >= keep*4/5, "an entry is kept for %s, want at most %s", d, keep)
	}
}

// Requests and tombstones count as what they take.
func TestRequestsAndTombstonesCount(t *testing.T) {
	const n = 1000
	empty := &list{follows: idset.New(idset.NewDirectory(), nil)}
	requests, ended := *empty, *empty
	requests.others, ended.ended = othersOf(make([]storage.Edge, n)), make([]endedEdge, n)
	for what, is := range map[string][2]int{
		"requests":   {requests.bytes(), n * int(unsafe.Sizeof(storage.Edge{}))},
		"tombstones": {ended.bytes(), n * int(unsafe.Sizeof(endedEdge{}))},
	} {
		check.Equal(t, what+" in bytes", is[0]-empty.bytes(), is[1])
	}
}

// Many requests are not copied into a form that is too long for a block.
func TestManyRequestsAreKeptAsTheyAre(t *testing.T) {
	c := New(Config{Store: oracle.New(), Bytes: 64 << 20})
	defer c.Close()
	l := &list{follows: idset.New(c.directory.Load(), nil), others: othersOf(make([]storage.Edge, 100_000)), lifetime: c.lives(keep)}
	k := key{kind: forwardKind, id: 1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.set(k, l)
	runtime.ReadMemStats(&after)
	check.Most(t, "what keeping the list takes beside it", after.TotalAlloc-before.TotalAlloc, uint64(l.bytes()/4))
	same, _ := get[*list](c, k)
	check.That(t, same == l, "it is not kept")
}

// What is kept has not aged because the machine's clock was set, nor is it kept for longer.
func TestAgesAreNotThoseOfTheClock(t *testing.T) {
	var ahead atomic.Int64
	set := func() time.Time {
		now := time.Now()
		const nanoseconds = 30 // bits, below the seconds of the clock, which no test can set otherwise
		*(*uint64)(unsafe.Pointer(&now)) += uint64(ahead.Load()/1e9) << nanoseconds
		return now
	}
	store := oracle.New()
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}})
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		c := New(Config{Store: store, Bytes: 1 << 20, Now: set})
		defer c.Close()
		storage.PageLookups[storage.Forward].Read(t.Context(), c, storage.PageQuery{Owner: 1, Limit: 3})
		k := key{kind: forwardKind, id: 1}
		ahead.Add(int64(by))
		l, kept := get[*list](c, k)
		check.That(t, kept && l.until.Sub(c.now()) <= keep && l.ends.Sub(c.now()) <= keepUnchanged, "the clock is set by %s: kept: %v, until %v", by, kept, l)
	}
}
