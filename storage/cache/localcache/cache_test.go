package localcache_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/cache/localcache"
)

// setsOf asks for lists as sets.
func setsOf(t *testing.T, cache *localcache.Cache, side storage.Side, owners []storage.UserID) []storage.Result[idset.List] {
	var b storage.Bundle
	l := idset.ListLookups[side].Ask(&b, owners...)
	cache.Bundle(t.Context(), &b)
	lists := make([]storage.Result[idset.List], len(owners))
	for i, r := range l.Results {
		if lists[i].Found, lists[i].Err = r.Found, r.Err; r.Found {
			lists[i].Value = *r.Value
		}
	}
	return lists
}

// reads counts what is read from a store.
type reads struct {
	calls, keys atomic.Int64 // of profiles and lists
	lists       atomic.Int64 // reads of lists
	rows        atomic.Int64 // reads of edges as rows
	longest     atomic.Int64 // bound of the lists that were asked for
	endedSince  atomic.Int64 // of the tombstones that were asked for
}

// counted is a store whose reads are counted.
func counted() (*double.Store, *reads) {
	store, n := double.Of(oracle.New()), new(reads)
	double.Before(store, func(_ context.Context, ids []storage.UserID) error {
		n.calls.Add(1)
		n.keys.Add(int64(len(ids)))
		return nil
	}, storage.ProfileLookups)
	double.Before(store, func(_ context.Context, q []storage.ListQuery) error {
		n.calls.Add(1)
		n.lists.Add(1)
		n.keys.Add(int64(len(q)))
		n.longest.Store(max(n.longest.Load(), int64(q[0].Longest)))
		n.endedSince.Store(int64(q[0].EndedSince))
		return nil
	}, storage.SnapshotLookups...)
	double.Before(store, func(context.Context, []storage.Pair) error { n.rows.Add(1); return nil }, storage.EdgeLookups...)
	double.Before(store, func(context.Context, []storage.PageQuery) error { n.rows.Add(1); return nil }, storage.PageLookups...)
	return store, n
}

// people makes users 1 … n.
func people(t *testing.T, store storage.Store, n int) {
	t.Helper()
	users := make([]storage.User, n)
	for i := range users {
		users[i] = storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprint("u", i+1), Name: "somebody"}
	}
	must.All(t, store.CreateUsers(t.Context(), users))
}

// followers makes users 2 … n+1 follow user 1.
func followers(t *testing.T, store storage.Store, n int) {
	t.Helper()
	edges := make([]storage.Edge, n)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(i + 2), To: 1, Type: storage.Following, UpdateTime: storage.Micros(i + 1)}
	}
	write(t, store, edges...)
}

// write writes edges to both sides.
func write(t *testing.T, store storage.Store, edges ...storage.Edge) {
	t.Helper()
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		must.All(t, store.Apply(t.Context(), side, edges, storage.IfNewer))
	}
}

func newCache(t *testing.T, store storage.Store, bytes uint64) *localcache.Cache {
	t.Helper()
	c, _ := measured(t, store, bytes)
	return c
}

// measured is a new cache with its metrics.
func measured(t *testing.T, store storage.Store, bytes uint64) (*localcache.Cache, gauges) {
	t.Helper()
	m := gauges{prometheus.NewRegistry()}
	c := localcache.New(localcache.Config{Store: store, Bytes: bytes, Metrics: localcache.NewMetrics(m), Now: func() time.Time { return time.UnixMicro(0) }})
	t.Cleanup(c.Close)
	return c, m
}

func TestWhoAsksForTheSameWaitsForOneRead(t *testing.T) {
	goOn := make(chan struct{})
	store, read := counted()
	double.After(store, func(storage.Side, []storage.UserID, []storage.Result[storage.Profile]) { <-goOn }, storage.ProfileLookups)
	people(t, store, 10)
	cache := newCache(t, store, 1<<20)
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			for i, r := range storage.UserLookups.Read(t.Context(), cache, 3, 4, 99) {
				check.That(t, r.Found == (i < 2) && r.Err == nil, "key %d: %+v", i, r)
			}
		})
	}
	for read.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	asking.Wait()
	check.Equal(t, "keys that were read", read.keys.Load(), 3)
	before := read.calls.Load()                      // 1, unless several began with a key each
	storage.UserLookups.Read(t.Context(), cache, 99) // no user has this id, which is kept, too
	n := read.calls.Load()
	check.That(t, n == before && n <= 3, "%d reads, and %d in the end", before, n)
}

func TestOff(t *testing.T) {
	for on, reads := range map[bool]int64{false: 0, true: 1} {
		store, read := counted()
		people(t, store, 3)
		followers(t, store, 2)
		cache, m := measured(t, store, 1<<20)
		cache.Switch(on)
		is := m.value(t, "kith_cache_enabled")
		check.That(t, is == 1 == on, "on %t: the metric says %v", on, is)
		for range 3 {
			r := storage.PageLookups[storage.Inverse].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 5})[0]
			check.That(t, len(r.Value) == 2, "on %t: %+v", on, r)
		}
		check.Equal(t, fmt.Sprintf("reads of lists, on %t", on), read.calls.Load(), reads)
		check.Equal(t, fmt.Sprintf("whether things are at hand, on %t", on), atHand(cache, 1) > 0, on)
		before := read.calls.Load()
		ids := []storage.UserID{2}
		storage.UserLookups.Read(t.Context(), cache, ids...)
		storage.CountLookups.Read(t.Context(), cache, ids...)
		storage.BlockLookups.Read(t.Context(), cache, ids...)
		check.That(t, on || read.calls.Load() == before, "users and counts came as profiles while the cache was off")
		check.Equal(t, fmt.Sprintf("whether entries are kept, on %t", on), m.value(t, "kith_cache_entries") > 0, on)
	}
}

// A read whose caller has gone is not answered, not even with values in memory.
func TestWhoHasGoneIsNotAnswered(t *testing.T) {
	store := oracle.New()
	people(t, store, 2)
	cache := newCache(t, store, 1<<20)
	ids := []storage.UserID{1}
	gone, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		for name, err := range map[string]error{
			"users":    storage.UserLookups.Read(gone, cache, ids...)[0].Err,
			"counts":   storage.CountLookups.Read(gone, cache, ids...)[0].Err,
			"profiles": storage.ProfileLookups.Read(gone, cache, ids...)[0].Err,
			"blocks":   storage.BlockLookups.Read(gone, cache, ids...)[0].Err,
		} {
			check.Is(t, name, err, gone.Err())
		}
		cancel()
	}
}

// Edges of many owners are answered from the lists that are in memory. For so many owners no list is read.
func TestEdgesOfManyOwners(t *testing.T) {
	store, read := counted()
	people(t, store, 30)
	followers(t, store, 20)
	cache := newCache(t, store, 1<<20)
	var pairs []storage.Pair
	for id := storage.UserID(2); id <= 21; id++ {
		storage.NeighbourLookups[storage.Forward].Read(t.Context(), cache, id) // now its list is in memory
		pairs = append(pairs, storage.Pair{From: id, To: 1})
	}
	lists, rows := read.calls.Load(), read.rows.Load()
	for i, r := range storage.EdgeLookups[storage.Forward].Read(t.Context(), cache, pairs...) {
		check.That(t, r.Value.Type == storage.Following && r.Value.Pair() == pairs[i], "edge %v: %+v", pairs[i], r)
	}
	check.Equal(t, "reads of lists, which are in memory", read.calls.Load(), lists)
	check.Equal(t, "reads of edges, which are in memory", read.rows.Load(), rows)
}

// For edges of few owners their lists are read and kept. For edges of more owners, the edges are read.
func TestListsOfFewOwnersAreRead(t *testing.T) {
	for owners, lists := range map[int]int64{8: 1, 9: 0} {
		store, read := counted()
		people(t, store, 30)
		followers(t, store, 20)
		cache := newCache(t, store, 1<<20)
		pairs := make([]storage.Pair, owners)
		for i := range pairs {
			pairs[i] = storage.Pair{From: storage.UserID(2 + i), To: 1}
		}
		for i, r := range storage.EdgeLookups[storage.Forward].Read(t.Context(), cache, pairs...) {
			check.That(t, r.Value.Type == storage.Following && r.Value.Pair() == pairs[i], "edge %v: %+v", pairs[i], r)
		}
		check.Equal(t, fmt.Sprintf("reads of lists, of %d owners", owners), read.calls.Load(), lists)
		check.Equal(t, fmt.Sprintf("reads of edges, of %d owners", owners), read.rows.Load(), 1-lists)
	}
}

func TestHitsAndMissesAreCounted(t *testing.T) {
	store := oracle.New()
	people(t, store, 3)
	cache, m := measured(t, store, 1<<20)
	storage.UserLookups.Read(t.Context(), cache, 1)
	storage.UserLookups.Read(t.Context(), cache, 1, 2, 3, 99)
	storage.UserLookups.Read(t.Context(), cache, 1, 2)
	check.Equal(t, "hits", m.value(t, "kith_cache_hits_total"), 3)
	check.Equal(t, "misses", m.value(t, "kith_cache_misses_total"), 4)
}

func TestWhatIsAtHandIsWhatWouldBeRead(t *testing.T) {
	store := oracle.New()
	people(t, store, 5)
	followers(t, store, 3)
	cache := newCache(t, store, 1<<20)
	ids := []storage.UserID{1, 3, 77}
	pairs := []storage.Pair{{From: 2, To: 1}, {From: 5, To: 1}, {From: 77, To: 1}}
	queries := []storage.PageQuery{{Owner: 1, Limit: 2}}
	recalled := func(ids []storage.UserID) storage.Bundle {
		var b storage.Bundle
		storage.UserLookups.Ask(&b, ids...)
		storage.CountLookups.Ask(&b, ids...)
		storage.BlockLookups.Ask(&b, ids...)
		storage.EdgeLookups[storage.Inverse].Ask(&b, pairs...)
		storage.PageLookups[storage.Inverse].Ask(&b, queries...)
		cache.AtHand(&b)
		return b
	}
	b := recalled(ids)
	check.That(t, storage.UserLookups.In(&b).Open(), "users are at hand before they were read")
	ask(t.Context(), cache, 1)
	users, counts, blocks := storage.UserLookups.Read(t.Context(), cache, ids...), storage.CountLookups.Read(t.Context(), cache, ids...), storage.BlockLookups.Read(t.Context(), cache, ids...)
	b = recalled(ids)
	same(t, "users", users, storage.UserLookups.In(&b).Results)
	same(t, "counts", counts, storage.CountLookups.In(&b).Results)
	same(t, "blocks", blocks, storage.BlockLookups.In(&b).Results)
	same(t, "edges", storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, pairs...), storage.EdgeLookups[storage.Inverse].In(&b).Results)
	same(t, "pages", storage.PageLookups[storage.Inverse].Read(t.Context(), store, queries...), storage.PageLookups[storage.Inverse].In(&b).Results)
	b = recalled(append(ids, 4))
	check.That(t, storage.UserLookups.In(&b).Open(), "users are at hand though one was not read")
}

func same[V any](t *testing.T, what string, want, got []storage.Result[V]) {
	t.Helper()
	check.Equal(t, what+" at hand", fmt.Sprint(got), fmt.Sprint(want))
}

// atHand returns how many kinds of values of a user are in memory: the user, its blocks, its
// followings and its followers.
func atHand(cache *localcache.Cache, id storage.UserID) (kinds int) {
	var b storage.Bundle
	page := storage.PageQuery{Owner: id, Limit: 5}
	user, blocks := storage.UserLookups.Ask(&b, id), storage.BlockLookups.Ask(&b, id)
	followings, followers := storage.PageLookups[storage.Forward].Ask(&b, page), storage.PageLookups[storage.Inverse].Ask(&b, page)
	cache.AtHand(&b)
	for _, open := range []bool{user.Open(), blocks.Open(), followings.Open(), followers.Open()} {
		if !open {
			kinds++
		}
	}
	return kinds
}

// A caller that has read a row in the store finds it in later answers of the cache, even if no
// event has come.
func TestWhatWasSeenInTheStoreIsExpected(t *testing.T) {
	store := oracle.New()
	people(t, store, 3)
	cache := newCache(t, store, 1<<20)
	fresh := localcache.NewStoreReader(store, func(_ context.Context, rows []storage.Row) { cache.RequireRows(rows) })
	ask(t.Context(), cache, 2)
	ask(t.Context(), cache, 1)
	for _, kind := range []storage.EdgeType{storage.Following, storage.None, storage.Blocking} {
		write(t, store, storage.Edge{From: 2, To: 1, Type: kind, UpdateTime: 10 + storage.Micros(kind+9)%10})
		storage.EdgeLookups[storage.Inverse].Read(t.Context(), fresh, storage.Pair{From: 2, To: 1})
		agree(t, kind, cache, store, 1, 2)
	}
}

// Bundles also report the rows that they saw. A row on the inverse side is on both sides.
func TestWhatABundleSawIsExpected(t *testing.T) {
	store := oracle.New()
	edge := storage.Edge{From: 2, To: 1, Type: storage.Following, UpdateTime: 10}
	store.Apply(t.Context(), storage.Inverse, []storage.Edge{edge}, storage.IfNewer)
	var saw []storage.Row
	fresh := localcache.NewStoreReader(store, func(_ context.Context, rows []storage.Row) { saw = append(saw, rows...) })
	var b storage.Bundle
	storage.EdgeLookups[storage.Inverse].Ask(&b, edge.Pair(), storage.Pair{From: 3, To: 1})
	fresh.Bundle(t.Context(), &b)
	check.Equal(t, "what it saw", saw, []storage.Row{{Side: storage.Forward, Edge: edge}, {Side: storage.Inverse, Edge: edge}})
}

// Users are numbered in order of their ids, from all shards, and sets from before the renewal are not
// mixed with sets from after it.
func TestUsersAreNumbered(t *testing.T) {
	store := oracle.New()
	people(t, store, 500)
	followers(t, store, 100)
	cache := newCache(t, store, 1<<20)
	before := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]
	ctx, cancel := context.WithCancel(t.Context())
	var numbering sync.WaitGroup
	numbering.Go(func() { cache.Number(ctx, store, 1000, nil, nil) })
	must.Soon(t, "users are numbered", func() bool {
		after := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]
		if !after.Found { // the directory is being renewed
			return false
		}
		dir := after.Value.Peers.Directory()
		if dir == before.Value.Peers.Directory() {
			return false
		}
		check.That(t, dir.Len() == 500 && dir.Late() == 0 && after.Value.Peers.Len() == 100, "%d users numbered, %d late, a set of %d", dir.Len(), dir.Late(), after.Value.Peers.Len())
		return true
	})
	cancel()
	numbering.Wait()
}

// gauges are metrics, gauges and counters, whose values can be read.
type gauges struct{ *prometheus.Registry }

// value is the sum of a metric over its labels.
func (g gauges) value(t *testing.T, name string) float64 { return metered.Value(t, g, name) }
