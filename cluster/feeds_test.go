package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// feedGateway is one of several gateways on a store, with the parts that home feeds need.
type feedGateway struct {
	redis    *Redis
	caches   *Caches
	registry *prometheus.Registry
	feeds    *social.Feeds // with inboxes
	stop     func()        // ends the copying
}

// found is how many posts were found by reading the store, without their events.
func (g *feedGateway) found(t *testing.T) int { return g.counted(t, "kith_feed_found_posts_total") }

func (g *feedGateway) counted(t *testing.T, name string) int {
	return int(metered.Value(t, g.registry, name))
}

func openFeedGateway(t *testing.T, location, redis string) *feedGateway {
	t.Helper()
	return openFeedGatewayOf(t, Config{Redis: redis, Redundancy: Sync}, sqlstore.Config{Location: location}, 0)
}

// openCopyingGateway opens a gateway with inboxes. late is how late posts may come.
func openCopyingGateway(t *testing.T, location, redis string, late time.Duration) *feedGateway {
	t.Helper()
	return openFeedGatewayOf(t, Config{Redis: redis, Redundancy: Sync}, sqlstore.Config{Location: location}, late)
}

// openFeedGatewayOf opens a gateway, with inboxes unless late is 0.
func openFeedGatewayOf(t *testing.T, d Config, of sqlstore.Config, late time.Duration) *feedGateway {
	t.Helper()
	store := opened.Store(t, of)
	server, err := d.OpenRedis(t.Context())
	must.OK(t, err)
	t.Cleanup(func() { server.Close() })
	hub, logger := events.NewHub(nil), slog.New(slog.DiscardHandler)
	g := &feedGateway{registry: prometheus.NewRegistry(), redis: server}
	bus := EventsOf(store, server, hub, events.NewMetrics(g.registry))
	g.caches = d.OpenCaches(CacheConfig{
		Store: store, Bus: bus, Redis: server, Bytes: 1 << 20, FeedBytes: 1 << 20, Hub: hub, Logger: logger, FeedLate: late, Registerer: g.registry,
	})
	started := make(chan struct{})
	t.Cleanup(g.caches.Close)
	t.Cleanup(InBackground(func(ctx context.Context) { g.caches.Run(ctx, func() { close(started) }) }))
	<-started
	if late > 0 {
		g.copies(t, logger)
	}
	return g
}

// publish publishes a post of user 1 through the gateway, which knows the post at once.
func (g *feedGateway) publish(t *testing.T, n int) {
	t.Helper()
	before := g.caches.RecentPosts().Len()
	_, _, err := g.caches.store.Publish(t.Context(), storage.PostRow{
		PostID: storage.PostID{Author: 1, Number: int64(n)}, Key: fmt.Sprint(n), Text: "a", At: storage.MicrosOf(time.Now()),
	})
	must.OK(t, err)
	check.Equal(t, fmt.Sprintf("posts at the gateway that post %d was published on", n), g.caches.RecentPosts().Len(), before+1)
}

func (g *feedGateway) wait(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); g.caches.RecentPosts().Len() != n; time.Sleep(100 * time.Microsecond) {
		must.That(t, !time.Now().After(end), "%d posts, want %d", g.caches.RecentPosts().Len(), n)
	}
}

// TestPostsReachOtherGateways: with a Redis, while Redis is away, after it is back, and without a Redis. The
// test logs after how long.
func TestPostsReachOtherGateways(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"with Redis", "without"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var server *testenv.RedisServer
			url := ""
			if way == "with Redis" {
				server = testenv.Redis(t)
				url = server.URL()
			}
			location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
			a := openFeedGateway(t, location, url)
			users := []storage.User{{ID: 1, Handle: "user_1", Name: "A"}}
			a.caches.store.CreateUsers(t.Context(), users)
			b := openFeedGateway(t, location, url)
			a.loaded(t)
			b.loaded(t)
			n := 0
			round := func(what string, times int) {
				var took []time.Duration
				for range times {
					n++
					a.publish(t, n)
					began := time.Now()
					b.wait(t, n)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				t.Logf("%s: seen on the other gateway after %s, at most %s", what, took[len(took)/2], took[len(took)-1])
			}
			round(way, 20)
			if byEvent := n - b.found(t); server != nil && byEvent < n/2 || server == nil && byEvent != 0 {
				t.Errorf("%d of %d posts came by events", byEvent, n)
			}
			if server == nil {
				return
			}
			server.Kill(t)
			round("while Redis is gone", 10)
			server.Restart(t)
			round("when it is back", 10)
			deleted, err := a.caches.store.DeletePost(t.Context(), storage.PostID{Author: 1, Number: 3})
			must.That(t, deleted && err == nil, "%v, %v", deleted, err)
			a.wait(t, n-1)
		})
	}
}

// loaded waits until the gateway has the posts of the store.
func (g *feedGateway) loaded(t *testing.T) {
	t.Helper()
	must.Soon(t, "posts are loaded", func() bool { return time.Since(g.caches.RecentPosts().Floor().Time()) >= 0 })
}
