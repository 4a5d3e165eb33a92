package localcache_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/cache/localcache"
	"kith/storage/finding"
)

// ranked is a store of two shards, the odd ids and the even ones, whose users have classes.
type ranked struct {
	*oracle.Store
	mu      sync.Mutex
	classes map[storage.UserID]int
	failing bool
	read    []storage.UserID // whose profiles were read, in that order
}

func (r *ranked) Shards() int { return 2 }

func (r *ranked) Ranked(_ context.Context, shard int, after finding.Rank, limit int) (ranks []finding.Rank, err error) {
	if r.failing {
		return nil, errors.New("no connection")
	}
	for id, class := range r.classes {
		one := finding.Rank{Class: class, User: id}
		if int(id%2) == shard && (after == finding.Rank{} || order(one, after) > 0) {
			ranks = append(ranks, one)
		}
	}
	slices.SortFunc(ranks, order)
	return ranks[:min(limit, len(ranks))], nil
}

func order(a, b finding.Rank) int {
	return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(b.User, a.User))
}

func (r *ranked) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	r.mu.Lock()
	r.read = append(r.read, ids...)
	r.mu.Unlock()
	return storage.ProfileLookups.Read(ctx, r.Store, ids...)
}

func (r *ranked) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, r.profiles)
	r.Store.Bundle(ctx, b)
}

// newRanked makes a store whose users are the better known the smaller their ids are.
func newRanked(t *testing.T, users int) *ranked {
	t.Helper()
	r := &ranked{Store: oracle.New(), classes: make(map[storage.UserID]int)}
	people(t, r.Store, users)
	var edges []storage.Edge
	for i := range users {
		id := storage.UserID(i + 1)
		r.classes[id] = 400 - i/10
		edges = append(edges, storage.Edge{From: storage.UserID(1 + (i+7)%users), To: id, Type: storage.Following, UpdateTime: 5})
	}
	write(t, r, edges...)
	return r
}

// A source that must not be asked.
type untouched struct{ storage.Bundler }

func warmed(t *testing.T, store *ranked, bytes uint64) (*localcache.Cache, gauges) {
	t.Helper()
	m := gauges{prometheus.NewRegistry()}
	cache := localcache.New(localcache.Config{Source: untouched{}, Store: store, Bytes: bytes, Metrics: localcache.NewMetrics(m)})
	t.Cleanup(cache.Close)
	return cache, m
}

// Users come into memory with their lists, the most followed of all shards first, and requests are then answered without a
// read. Who has no followers is left out.
func TestWarmUp(t *testing.T) {
	store := newRanked(t, 300)
	store.classes[300] = 100
	cache, m := warmed(t, store, 8<<20)
	cache.WarmUp(store, slog.New(slog.DiscardHandler))(t.Context())
	check.Equal(t, "users who were read", m.value(t, "kith_cache_warmed_total"), 299)
	first := slices.Sorted(slices.Values(store.read[:64]))
	check.That(t, first[0] == 1 && first[63] <= 70, "read first were %v", first) // 10 of each class, the greater ids first
	read := len(store.read)
	everybody := make([]storage.UserID, 299)
	for i := range everybody {
		everybody[i] = storage.UserID(i + 1)
	}
	for i, r := range storage.UserLookups.Read(t.Context(), cache, everybody...) {
		must.That(t, r.Err == nil && r.Found && r.Value.ID == everybody[i], "%+v", r)
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, r := range setsOf(t, cache, side, everybody) { // the source would panic
			must.Equal(t, "the length of a list", r.Value.Peers.Len(), 1)
		}
	}
	var b storage.Bundle
	recommenders := idset.RecommenderLookups.Ask(&b, everybody...)
	cache.AtHand(&b)
	must.That(t, !recommenders.Open(), "suggestions would read the store")
	for i, r := range recommenders.Results {
		dir := r.Value.Directory
		followings := r.Value.Followings.Set(dir).IDs()
		want := storage.UserID(1 + (int(everybody[i])-1+293)%300)
		must.That(t, slices.Equal(followings, []storage.UserID{want}) && r.Value.Following == 1, "user %d is known to follow %v, it follows %v", everybody[i], followings, want)
	}
	check.Equal(t, "users who were read in the end", len(store.read), read)
	check.Equal(t, "whether it is warming", m.value(t, "kith_cache_warming"), 0)
}

// Warming up leaves a quarter of the memory to what is asked for.
func TestWarmUpLeavesRoom(t *testing.T) {
	store := newRanked(t, 8000)
	const bytes = 2 << 20
	cache, m := warmed(t, store, bytes)
	cache.WarmUp(store, slog.New(slog.DiscardHandler))(t.Context())
	n := m.value(t, "kith_cache_warmed_total")
	check.That(t, n >= 1000 && n <= 7000, "%v users were read", n)
	kept := m.value(t, "kith_cache_bytes") + m.value(t, "kith_cache_directory_bytes")
	check.That(t, kept >= 0.7*bytes && kept <= 0.85*bytes, "%v of %d bytes are kept", kept, bytes)
}

// While the cache is off nothing is read, and an error of the store ends it with one line of the log.
func TestWarmUpWaitsAndEnds(t *testing.T) {
	store := newRanked(t, 100)
	cache, m := warmed(t, store, 8<<20)
	cache.Switch(false)
	var log strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		cache.WarmUp(store, slog.New(slog.NewTextHandler(&log, nil)))(t.Context())
	}()
	must.Soon(t, "it begins", func() bool { return m.value(t, "kith_cache_warming") != 0 })
	check.Equal(t, "users who were read while the cache was off", m.value(t, "kith_cache_warmed_total"), 0)
	cache.Switch(true)
	<-done
	check.Equal(t, "users who were read", m.value(t, "kith_cache_warmed_total"), 100)
	check.Has(t, "the log", log.String(), "warmed up")
	log.Reset()
	store.failing = true
	other, m := warmed(t, store, 8<<20)
	other.WarmUp(store, slog.New(slog.NewTextHandler(&log, nil)))(t.Context())
	check.Equal(t, "lines of the log", strings.Count(log.String(), "\n"), 1)
	check.Has(t, "the log", log.String(), "no connection")
	check.Equal(t, "whether it is warming", m.value(t, "kith_cache_warming"), 0)
}

// A long list of somebody who is followed by many is built, too.
func TestWarmUpBuildsLongLists(t *testing.T) {
	store := newRanked(t, 5)
	followers(t, store.Store, 1500)
	cache, _ := warmed(t, store, 8<<20)
	cache.WarmUp(store, slog.New(slog.DiscardHandler))(t.Context())
	r := setsOf(t, cache, storage.Inverse, []storage.UserID{1})[0]
	check.That(t, r.Found && r.Value.Peers.Len() >= 1500, "%+v", r)
}

// slowlyRanked is a store whose users take a second to read. Meanwhile a request may come.
type slowlyRanked struct {
	*ranked
	meanwhile func()
}

func (s *slowlyRanked) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	s.meanwhile()
	time.Sleep(time.Second)
	return storage.ProfileLookups.Read(ctx, s.ranked, ids...)
}

func (s *slowlyRanked) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.ranked.Bundle(ctx, b)
}

// Warming up pauses for as long as it reads, but only after it has read while a request came. What it reads itself is neither
// hits nor misses.
func TestWarmUpPausesWhileRequestsCome(t *testing.T) {
	const batches = 5
	for name, test := range map[string]struct {
		requests bool
		want     time.Duration
	}{
		"none":                      {false, batches * time.Second},
		"one in each but the first": {true, (batches + batches - 1) * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0.0
				store := &slowlyRanked{newRanked(t, 64*batches), func() {}}
				m := gauges{prometheus.NewRegistry()}
				cache := localcache.New(localcache.Config{Source: untouched{}, Store: store, Bytes: 8 << 20, Metrics: localcache.NewMetrics(m)})
				defer cache.Close()
				store.meanwhile = func() {
					if test.requests && len(store.read) > 0 {
						requests++
						r := storage.UserLookups.Read(t.Context(), cache, 1)[0]
						check.That(t, r.Found, "%v", r) // it is one of the first 64
					}
				}
				began := time.Now()
				cache.WarmUp(store, slog.New(slog.DiscardHandler))(t.Context())
				check.Equal(t, "what it took", time.Since(began), test.want)
				check.Equal(t, "hits", m.value(t, "kith_cache_hits_total"), requests)
				check.Equal(t, "misses", m.value(t, "kith_cache_misses_total"), 0)
			})
		})
	}
}
