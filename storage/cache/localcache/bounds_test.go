package localcache_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// takes waits until a cache takes so many bytes, at least and at most. Large entries are counted, and others
// evicted, shortly after an entry is kept.
func takes(t *testing.T, m gauges, least, most float64) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		bytes := m.value(t, "kith_cache_bytes")
		if bytes >= least && bytes <= most {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%.0f bytes are kept, want %.0f to %.0f", bytes, least, most)
		}
	}
}

func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	store := oracle.New()
	people(t, store, 5000)
	const bytes = 100_000
	m := gauges{prometheus.NewRegistry()}
	cache := localcache.New(localcache.Config{Store: store, Bytes: bytes, Metrics: localcache.NewMetrics(m)})
	defer cache.Close()
	for id := range storage.UserID(5000) {
		storage.UserLookups.Read(t.Context(), cache, id+1)
	}
	takes(t, m, 0, bytes)
	if n := m.value(t, "kith_cache_entries"); n < 50 || n > bytes/100 {
		t.Errorf("%.0f users are kept in %d bytes", n, bytes)
	}
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
		m := gauges{prometheus.NewRegistry()}
		cache := localcache.New(localcache.Config{
			Store: store, Bytes: 1 << 20, Metrics: localcache.NewMetrics(m), Now: func() time.Time { return time.UnixMicro(0) },
		})
		defer cache.Close()
		if r := setsOf(t, cache, storage.Forward, []storage.UserID{1})[0]; r.Err != nil || !r.Found {
			t.Fatalf("%+v", r)
		}
		if takes(t, m, 900*16, 900*64); m.value(t, "kith_cache_entries") != 1 {
			t.Errorf("type %d: %.0f lists are kept", kind, m.value(t, "kith_cache_entries"))
		}
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
	if got, want := read.endedSince.Load(), time.Unix(7200-600, 0).UnixMicro(); got != want {
		t.Errorf("tombstones since %d are read, want %d", got, want)
	}
}

func TestALongListIsReadWhenItIsAskedForOften(t *testing.T) {
	store, read := counted()
	people(t, store, 2)
	followers(t, store, 3000)
	cache := newCache(t, store, 64<<20)
	page := func() []storage.Edge {
		r := storage.PageLookups[storage.Inverse].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 3})[0]
		if r.Err != nil || len(r.Value) != 3 {
			t.Fatalf("a page of followers: %+v", r)
		}
		return r.Value
	}
	first := page()
	if read.rows.Load() != 1 {
		t.Error("the first page of a long list did not come from rows")
	}
	for end := time.Now().Add(10 * time.Second); ; {
		before := read.rows.Load()
		if got := page(); !slices.Equal(got, first) {
			t.Fatalf("page %v, want %v", got, first)
		}
		if read.rows.Load() == before {
			break // this one came from memory
		}
		if time.Now().After(end) {
			t.Fatal("a long list that is asked for often is not kept")
		}
	}
	if n := read.longest.Load(); n < 3000 {
		t.Errorf("lists were asked for up to %d", n)
	}
	// With one more follower, and with one less, the list is changed, not read again.
	reads, rows := read.calls.Load(), read.rows.Load()
	cache.Apply(t.Context(), localcache.ChangedRows(
		storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 7000, To: 1, Type: storage.Following, UpdateTime: 9000}},
		storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: first[0].From, To: 1, Type: storage.None, UpdateTime: 9001}},
	), true)
	if got := page(); got[0].From != 7000 || got[1] != first[1] {
		t.Errorf("after a follow and its opposite: %v", got)
	}
	n := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]
	if !n.Found || n.Value.Peers.Len() != 3000 || n.Value.Order.Len() != 3000 || n.Value.Peers.Contains(first[0].From) {
		t.Errorf("the set: %+v", n)
	}
	if read.calls.Load() != reads || read.rows.Load() != rows {
		t.Error("the list was read again")
	}
	// Whether a user is a follower is known, but the time of the follow requires a row.
	edges := storage.EdgeLookups[storage.Inverse].Read(t.Context(), cache, storage.Pair{From: 8000, To: 1}, storage.Pair{From: first[1].From, To: 1})
	if edges[0].Value.Type == storage.Following || edges[1].Value != first[1] {
		t.Errorf("edges: %+v", edges)
	}
}

func TestAListThatDoesNotFitIsReadAsRows(t *testing.T) {
	store, read := counted()
	people(t, store, 2)
	followers(t, store, 3000)
	cache := newCache(t, store, 200_000) // an eighth is 1,500 edges
	for range 20 {
		if r := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), cache, 1)[0]; len(r.Value) != 3000 {
			t.Fatalf("%d followers: %v", len(r.Value), r.Err)
		}
	}
	if n := read.longest.Load(); n >= 3000 {
		t.Errorf("lists were asked for up to %d", n)
	}
	if n := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]; n.Found {
		t.Error("it is kept")
	}
}

// Every text of a user takes space.
func TestTextsTakeRoom(t *testing.T) {
	store := oracle.New()
	text := strings.Repeat("x", 100)
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: text, Name: text, Bio: text, AvatarURL: text}})
	m := gauges{prometheus.NewRegistry()}
	cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, Metrics: localcache.NewMetrics(m), Now: func() time.Time { return time.UnixMicro(0) }})
	defer cache.Close()
	storage.UserLookups.Read(t.Context(), cache, 1)
	takes(t, m, 4*100+80, 700)
}
