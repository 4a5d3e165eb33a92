package localcache_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// takes waits until a cache takes so many bytes, at least and at most. Large entries are counted, and others
// evicted, shortly after an entry is kept.
func takes(t *testing.T, m gauges, least, most float64) {
	t.Helper()
	must.Soon(t, fmt.Sprintf("%.0f to %.0f bytes are kept", least, most), func() bool {
		bytes := m.value(t, "kith_cache_bytes")
		return bytes >= least && bytes <= most
	})
}

func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	store := oracle.New()
	people(t, store, 5000)
	const bytes = 100_000
	cache, m := measured(t, store, bytes)
	for id := range storage.UserID(5000) {
		storage.UserLookups.Read(t.Context(), cache, id+1)
	}
	takes(t, m, 0, bytes)
	n := m.value(t, "kith_cache_entries")
	check.That(t, n >= 50 && n <= bytes/100, "%.0f users are kept in %d bytes", n, bytes)
}

// Blocks and tombstones, which a list has beside its follows, take space as well.
func TestBlocksAndTombstonesTakeRoom(t *testing.T) {
	const n = 900
	for _, kind := range []storage.EdgeType{storage.Blocking, storage.None} {
		store := oracle.New()
		people(t, store, 1)
		edges := make([]storage.Edge, n)
		for i := range edges {
			edges[i] = storage.Edge{From: 1, To: storage.UserID(i + 2), Type: kind, UpdateTime: storage.Micros(i + 1)}
		}
		store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
		cache, m := measured(t, store, 1<<20)
		r := setsOf(t, cache, storage.Forward, []storage.UserID{1})[0]
		must.That(t, r.Err == nil && r.Found, "%+v", r)
		takes(t, m, 900*16, 900*64)
		check.Equal(t, fmt.Sprintf("lists that are kept, of type %d", kind), m.value(t, "kith_cache_entries"), 1)
	}
}

// Tombstones of the last ten minutes are read with a list, counted from the last full minute.
func TestTombstonesOfTenMinutesAreRead(t *testing.T) {
	store, read := counted()
	people(t, store, 1)
	now := time.Unix(7200, 0).Add(59 * time.Second)
	cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, Now: func() time.Time { return now }})
	defer cache.Close()
	setsOf(t, cache, storage.Forward, []storage.UserID{1})
	check.Equal(t, "the time since when tombstones are read", read.endedSince.Load(), time.Unix(7200-600, 0).UnixMicro())
}

func TestALongListIsReadWhenItIsAskedForOften(t *testing.T) {
	store, read := counted()
	people(t, store, 2)
	followers(t, store, 3000)
	cache := newCache(t, store, 64<<20)
	page := func() []storage.Edge {
		r := storage.PageLookups[storage.Inverse].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 3})[0]
		must.That(t, r.Err == nil && len(r.Value) == 3, "a page of followers: %+v", r)
		return r.Value
	}
	first := page()
	check.Equal(t, "reads of rows for the first page of a long list", read.rows.Load(), 1)
	must.Soon(t, "a long list that is asked for often is kept", func() bool {
		before := read.rows.Load()
		must.Equal(t, "page", page(), first)
		return read.rows.Load() == before // this one came from memory
	})
	check.Least(t, "the longest list that was asked for", read.longest.Load(), 3000)
	// With one more follower, and with one less, the list is changed, not read again.
	reads, rows := read.calls.Load(), read.rows.Load()
	cache.Apply(t.Context(), localcache.ChangedRows(
		storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 7000, To: 1, Type: storage.Following, UpdateTime: 9000}},
		storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: first[0].From, To: 1, Type: storage.None, UpdateTime: 9001}},
	), true)
	got := page()
	check.That(t, got[0].From == 7000 && got[1] == first[1], "after a follow and its opposite: %v", got)
	n := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]
	check.That(t, n.Found && n.Value.Peers.Len() == 3000 && n.Value.Order.Len() == 3000 && !n.Value.Peers.Contains(first[0].From), "the set: %+v", n)
	check.That(t, read.calls.Load() == reads && read.rows.Load() == rows, "the list was read again")
	// Whether a user is a follower is known, but the time of the follow requires a row.
	edges := storage.EdgeLookups[storage.Inverse].Read(t.Context(), cache, storage.Pair{From: 8000, To: 1}, storage.Pair{From: first[1].From, To: 1})
	check.That(t, edges[0].Value.Type != storage.Following && edges[1].Value == first[1], "edges: %+v", edges)
}

func TestAListThatDoesNotFitIsReadAsRows(t *testing.T) {
	store, read := counted()
	people(t, store, 2)
	followers(t, store, 3000)
	cache := newCache(t, store, 200_000) // an eighth is 1,500 edges
	for range 20 {
		r := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), cache, 1)[0]
		must.That(t, len(r.Value) == 3000, "%d followers: %v", len(r.Value), r.Err)
	}
	check.Most(t, "the longest list that was asked for", read.longest.Load(), 2999)
	check.That(t, !setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0].Found, "it is kept")
}

// Every text of a user takes space.
func TestTextsTakeRoom(t *testing.T) {
	store := oracle.New()
	text := strings.Repeat("x", 100)
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: text, Name: text, Bio: text, AvatarURL: text}})
	cache, m := measured(t, store, 1<<20)
	storage.UserLookups.Read(t.Context(), cache, 1)
	takes(t, m, 4*100+80, 700)
}
