package localcache_test

import (
	"runtime"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A hundred thousand may unfollow a user within minutes. What one more takes does not grow with them, and a late row brings none of
// them back.
func TestManyUnfollowsAreNotCopiedForEachOne(t *testing.T) {
	const famous, followers, last = 1, 20_000, 64
	store := oracle.New()
	const now storage.Micros = 1000 // the clock of the cache is at 0
	edges := make([]storage.Edge, followers)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(10 + i), To: famous, Type: storage.Following, UpdateTime: now - 100}
	}
	must.All(t, store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
	cache := newCache(t, store, 256<<20)
	list := func() int {
		r := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), cache, famous)[0]
		must.OK(t, r.Err)
		return len(r.Value)
	}
	must.Soon(t, "the list is at hand", func() bool {
		var b storage.Bundle
		page := storage.PageLookups[storage.Inverse].Ask(&b, storage.PageQuery{Owner: famous, Limit: 5})
		cache.AtHand(&b)
		return list() == followers && !page.Open()
	})
	apply := func(rows []storage.Edge, kind storage.EdgeType, at storage.Micros) {
		for _, e := range rows {
			e.Type, e.UpdateTime = kind, at
			at++
			cache.Apply(t.Context(), storage.Change{Rows: []storage.Row{{Side: storage.Inverse, Edge: e}}}, false)
		}
	}
	var before, after runtime.MemStats
	apply(edges[:followers/2-last], storage.None, now)
	runtime.ReadMemStats(&before)
	apply(edges[followers/2-last:followers/2], storage.None, now+followers)
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes for an unfollow", (after.TotalAlloc-before.TotalAlloc)/last)
	check.Most(t, "bytes that are made for an unfollow", (after.TotalAlloc-before.TotalAlloc)/last, 150_000)
	ended := make([]storage.Edge, followers/2)
	for i, e := range edges[:followers/2] {
		ended[i] = e
		ended[i].Type, ended[i].UpdateTime = storage.None, now+storage.Micros(i)
	}
	must.All(t, store.Apply(t.Context(), storage.Inverse, ended, storage.IfNewer))
	apply(edges[:100], storage.Following, now-50) // late
	check.Equal(t, "followers", list(), followers/2)
}

// So may a hundred thousand ask to follow a user.
func TestManyRequestsAreNotCopiedForEachOne(t *testing.T) {
	const famous, followers, requests, last = 1, 5, 20_000, 64
	store := oracle.New()
	edges := make([]storage.Edge, requests)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(10 + 2*i), To: famous, Type: storage.Requested, UpdateTime: 900}
		if i < followers {
			edges[i].Type = storage.Following
		}
	}
	must.All(t, store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
	cache := newCache(t, store, 256<<20)
	must.Soon(t, "the list is at hand", func() bool {
		list := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), cache, famous)[0]
		var b storage.Bundle
		page := storage.PageLookups[storage.Inverse].Ask(&b, storage.PageQuery{Owner: famous, Limit: 5})
		cache.AtHand(&b)
		return len(list.Value) == followers && !page.Open()
	})
	apply := func(kind storage.EdgeType, step int) {
		for i := range storage.UserID(last) {
			e := storage.Edge{From: 11 + 200*i, To: famous, Type: kind, UpdateTime: storage.Micros(1000 + step)}
			cache.Apply(t.Context(), storage.Change{Rows: []storage.Row{{Side: storage.Inverse, Edge: e}}}, false)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	apply(storage.Requested, 1)
	apply(storage.None, 2)
	apply(storage.Blocking, 3)
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes for a change", (after.TotalAlloc-before.TotalAlloc)/last/3)
	check.Most(t, "bytes that are made for a change", (after.TotalAlloc-before.TotalAlloc)/last/3, 120_000)
	block := storage.EdgeLookups[storage.Inverse].Read(t.Context(), cache, storage.Pair{From: 11, To: famous})[0]
	check.Equal(t, "a block", block.Value.Type, storage.Blocking)
}
