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
