package localcache_test

import (
	"context"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

const tooMany = 1200 // too many for a list that is kept when it is first asked for

// cacheOver makes a cache over edges, and counts those that are read from the store one by one.
func cacheOver(t *testing.T, edges []storage.Edge) (*double.Store, *localcache.Cache, *int) {
	t.Helper()
	store, read := double.Of(oracle.New()), new(int)
	double.Before(store, func(_ context.Context, pairs []storage.Pair) error { *read += len(pairs); return nil }, storage.EdgeLookups...)
	write(t, store, edges...)
	cache := localcache.New(localcache.Config{Store: store, Bytes: 64 << 20})
	t.Cleanup(cache.Close)
	return store, cache, read
}

func edgeIn(t *testing.T, cache *localcache.Cache, side storage.Side, p storage.Pair) storage.Result[storage.Edge] {
	t.Helper()
	r := storage.EdgeLookups[side].Read(t.Context(), cache, p)[0]
	must.OK(t, r.Err)
	return r
}

// To report whether a user follows a celebrity, the cache uses the user's own list, which it reads
// once, instead of asking the store each time.
func TestFollowersAreFoundInTheirOwnLists(t *testing.T) {
	var edges []storage.Edge
	for follower := storage.UserID(2); follower < tooMany; follower++ {
		edges = append(edges, storage.Edge{From: follower, To: 1, Type: storage.Following, UpdateTime: storage.Micros(follower)})
	}
	_, cache, read := cacheOver(t, edges)
	for range 3 {
		r := edgeIn(t, cache, storage.Inverse, storage.Pair{From: 7, To: 1})
		check.Equal(t, "the time since when user 7 follows the celebrity", r.Value.UpdateTime, 7)
		r = edgeIn(t, cache, storage.Inverse, storage.Pair{From: 2 * tooMany, To: 1})
		check.That(t, !r.Found, "a stranger follows it: %+v", r.Value)
	}
	check.Equal(t, "rows that were read", *read, 0)
}

// A user who follows too many for its list to be kept sees its new follow at once, even before the
// follow is written on the other side, whose list is kept.
func TestWhoFollowsManySeesWhatItWrote(t *testing.T) {
	var edges []storage.Edge
	for to := storage.UserID(100); to < 100+tooMany; to++ {
		edges = append(edges, storage.Edge{From: 1, To: to, Type: storage.Following, UpdateTime: 1})
	}
	store, cache, _ := cacheOver(t, edges)
	pair := storage.Pair{From: 1, To: 2}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		r := edgeIn(t, cache, side, pair)
		must.That(t, !r.Found, "%s has %+v", side, r.Value)
	}
	e := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 9}
	must.OK(t, store.Apply(t.Context(), storage.Forward, []storage.Edge{e}, storage.IfNewer)[0].Err)
	cache.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
	check.Equal(t, "its own follow", edgeIn(t, cache, storage.Forward, pair).Value, e)
}
