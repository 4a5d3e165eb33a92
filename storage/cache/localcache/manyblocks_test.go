package localcache_test

import (
	"runtime"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Many may block a user who is famous. What a request of the user takes, or a new follower, does not grow with them.
func TestManyBlocksAreReadInPlace(t *testing.T) {
	const famous, blocking, times = 1, 50_000, 50
	store := oracle.New()
	edges := make([]storage.Edge, blocking)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(10 + i), To: famous, Type: storage.Blocking, UpdateTime: 1}
	}
	must.All(t, store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
	cache := newCache(t, store, 64<<20)
	read := func() {
		r := storage.BlockLookups.Read(t.Context(), cache, famous)[0]
		check.That(t, r.Err == nil && len(r.Value) == blocking, "%d blocks, %v", len(r.Value), r.Err)
	}
	read()
	follower := storage.UserID(1_000_000)
	followed := func() {
		follower++
		row := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: follower, To: famous, Type: storage.Following, UpdateTime: 2}}
		cache.Apply(t.Context(), storage.Change{Rows: []storage.Row{row}}, false)
	}
	for name, do := range map[string]func(){"a request": read, "a follower": followed} {
		do()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			do()
		}
		runtime.ReadMemStats(&after)
		check.Most(t, "bytes that are made for "+name, (after.TotalAlloc-before.TotalAlloc)/times, 8*blocking/10)
	}
	must.All(t, store.Apply(t.Context(), storage.Inverse, []storage.Edge{{From: 10, To: famous, Type: storage.None, UpdateTime: 3}}, storage.IfNewer))
	row := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 10, To: famous, Type: storage.Following, UpdateTime: 4}}
	cache.Apply(t.Context(), storage.Change{Rows: []storage.Row{row}}, false)
	check.Equal(t, "blocks when one of them has ended", len(storage.BlockLookups.Read(t.Context(), cache, famous)[0].Value), blocking-1)
}
