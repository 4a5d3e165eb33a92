package localcache_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// made answers every key without a store, so that only the cache is in memory.
func made(id func(n int) storage.UserID, users, follows int) *double.Store {
	s := double.Of(oracle.New())
	double.Read(s, func(_ context.Context, _ storage.Side, ids []storage.UserID) []storage.Result[storage.Profile] {
		return storage.Each(ids, func(id storage.UserID) storage.Result[storage.Profile] {
			user := storage.User{ID: id, Handle: fmt.Sprint("user", id), Name: fmt.Sprint("User ", id), Bio: strings.Repeat("b", 40)}
			return storage.Result[storage.Profile]{Found: true, Value: storage.Profile{User: user, Exists: true, Counted: true, Counts: storage.Counts{Version: 1}}}
		})
	}, storage.ProfileLookups)
	double.Read(s, func(_ context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
		return storage.Each(queries, func(q storage.ListQuery) storage.Result[storage.List] {
			edges := make([]storage.Edge, follows)
			for k := range edges {
				peer := id(1 + (int(q.Owner%7919)*7919+k*97)%users)
				edges[k] = side.Pair(q.Owner, peer).Edge(storage.Following, storage.Micros(1_700_000_000_000_000+(follows-k)*3_600_000_000))
			}
			return storage.Result[storage.List]{Found: true, Value: storage.List{Version: 1, Edges: edges}}
		})
	}, storage.SnapshotLookups...)
	double.Read(s, func(_ context.Context, _ storage.Side, users []storage.UserID) []storage.Result[[]storage.UserID] {
		return storage.Each(users, func(storage.UserID) storage.Result[[]storage.UserID] {
			return storage.Result[[]storage.UserID]{Found: true}
		})
	}, storage.BlockLookups)
	double.Read(s, func(_ context.Context, _ storage.Side, ids []storage.PostID) []storage.Result[storage.Post] {
		return storage.Each(ids, func(id storage.PostID) storage.Result[storage.Post] {
			media := []storage.Media{{Name: fmt.Sprint("file", id.Number), URL: "https://example.org/media/" + fmt.Sprint(id.Number)}}
			return storage.Result[storage.Post]{Found: true, Value: storage.Post{PostID: id, Text: strings.Repeat("t", 140), Media: media}}
		})
	}, storage.PostLookups)
	return s
}

func dense(n int) storage.UserID     { return storage.UserID(n) }
func sonyflake(n int) storage.UserID { return storage.UserID(600_000_000_000_000_000 + n*16_777_216*3) }

func heapInUse() int {
	for range 2 {
		runtime.GC()
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// The cache reports as many bytes as the heap has grown by. -v says how many a user, a post and an edge take.
func TestTheAccountIsTrue(t *testing.T) {
	for _, ids := range []struct {
		name string
		of   func(int) storage.UserID
	}{{"dense ids", dense}, {"sonyflake", sonyflake}} {
		for _, c := range []struct {
			kind       string
			n, follows int
		}{{"users", 20_000, 0}, {"blocks", 20_000, 0}, {"posts", 10_000, 0}, {"lists", 20_000, 0}, {"lists", 10_000, 5}, {"lists", 4000, 50}, {"lists", 400, 1000}} {
			m := gauges{prometheus.NewRegistry()}
			source := made(ids.of, 100_000, c.follows)
			cache := localcache.New(localcache.Config{Store: source, Bytes: 32 << 20, Metrics: localcache.NewMetrics(m)})
			ask := func(from, to int) {
				for n := from; n < to; n += 100 {
					keys := make([]storage.UserID, 100)
					for i := range keys {
						keys[i] = ids.of(n + i + 1)
					}
					askFor(t, cache, c.kind, keys)
				}
			}
			numbered := func() int { return int(m.value(t, "kith_cache_directory_bytes")) }
			if ask(0, c.n/10); c.follows > 0 {
				ask(0, c.n) // numbers all users
			}
			cache.Forget()
			before := heapInUse() - numbered()
			ask(0, c.n)
			real, account := heapInUse()-numbered()-before, int(m.value(t, "kith_cache_bytes"))
			t.Logf("%s, %s of %d: %d bytes each in the heap, %d by the account", ids.name, c.kind, c.follows, real/c.n, account/c.n)
			const blocks = 8 * 2 * 128 << 10 // may have room left: two blocks in each shard
			check.That(t, real >= account*9/10 && real <= account*11/10+blocks, "%s, %s of %d: %d bytes in the heap, %d by the account", ids.name, c.kind, c.follows, real, account)
			runtime.KeepAlive(cache)
			cache.Close()
		}
	}
}

func askFor(t *testing.T, cache *localcache.Cache, kind string, keys []storage.UserID) {
	switch kind {
	case "users":
		storage.UserLookups.Read(t.Context(), cache, keys...)
	case "blocks":
		storage.BlockLookups.Read(t.Context(), cache, keys...)
	case "lists":
		setsOf(t, cache, storage.Forward, keys)
	case "posts":
		posts := storage.Each(keys, func(k storage.UserID) storage.PostID { return storage.PostID{Author: k, Number: 1} })
		storage.PostLookups.Read(t.Context(), cache, posts...)
	}
}
