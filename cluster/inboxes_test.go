package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/loaders"
	"kith/social"
	"kith/storage"
	"kith/storage/feed/inbox"
)

// copies gives the gateway inboxes.
func (g *feedGateway) copies(t *testing.T, logger *slog.Logger) {
	boxes := g.caches.OpenInboxes(inbox.Config{Bounds: func() (int64, time.Duration) { return 3, time.Hour }, Lag: 100 * time.Millisecond, Logger: logger}, g.registry)
	g.feeds = &social.Feeds{Shards: g.caches.store.Shards, Recent: g.caches.RecentPosts(), Inboxes: boxes}
	g.stop = InBackground(boxes.Run)
	t.Cleanup(g.stop)
	t.Cleanup(InBackground(func(ctx context.Context) { g.feeds.BuildInboxes(ctx, g.graph) }))
}

func (g *feedGateway) graph(ctx context.Context) *social.Graph {
	return social.New(loaders.For(loaders.Attach(ctx, g.caches.Reader())).Reader(), 0, nil)
}

// page returns the first page of a user's feed.
func (g *feedGateway) page(t *testing.T, user storage.UserID) (numbers []int64) {
	t.Helper()
	feed, err := g.feeds.Of(t.Context(), g.graph(t.Context()), social.FeedOf{User: user})
	must.OK(t, err)
	page, err := feed.Page(t.Context(), storage.Place{}, 100)
	must.OK(t, err)
	for _, p := range page.Rows {
		numbers = append(numbers, p.Number)
	}
	return numbers
}

// TestInboxesWhileTheirPartsFail: two gateways give the same pages while posts come, Redis is killed and comes
// back, loses all its data, and the gateway that copies posts stops. After each failure inboxes are used again.
func TestInboxesWhileTheirPartsFail(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	const late = 500 * time.Millisecond
	a := openCopyingGateway(t, location, server.URL(), late)
	var users []storage.User
	for id := range 5 {
		users = append(users, storage.User{ID: storage.UserID(id + 1), Handle: fmt.Sprintf("user_%d", id+1), Name: "A"})
	}
	a.caches.store.CreateUsers(t.Context(), users)
	var follows []storage.Edge // 1 is hot
	for _, pair := range [][2]storage.UserID{{2, 1}, {3, 1}, {4, 1}, {2, 3}, {2, 4}, {5, 3}} {
		follows = append(follows, storage.Edge{From: pair[0], To: pair[1], Type: storage.Following, UpdateTime: 1})
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		a.caches.store.Apply(t.Context(), side, follows, storage.IfNewer)
	}
	b := openCopyingGateway(t, location, server.URL(), late)
	a.loaded(t)
	b.loaded(t)
	gateways := []*feedGateway{a, b}

	want := map[storage.UserID][]int64{} // by reader, newest first
	number := int64(0)
	publish := func(g *feedGateway, author storage.UserID) {
		t.Helper()
		number++
		_, _, err := g.caches.store.Publish(t.Context(), storage.PostRow{
			PostID: storage.PostID{Author: author, Number: number}, Key: fmt.Sprint(number), Text: "a", At: storage.MicrosOf(time.Now()),
		})
		must.OK(t, err)
		for _, e := range follows {
			if e.To == author {
				want[e.From] = slices.Insert(want[e.From], 0, number)
			}
		}
	}
	// quiet waits until both gateways have the posts, and show some posts that were copied to inboxes.
	quiet := func(what string) {
		t.Helper()
		before := []int{a.counted(t, "kith_feed_inbox_pages_total"), b.counted(t, "kith_feed_inbox_pages_total")}
		copied := func() bool {
			for i, g := range gateways {
				s := g.feeds.Inboxes.Current()
				if s == nil || s.Done < storage.MicrosOf(time.Now().Add(-10*time.Second)) || g.counted(t, "kith_feed_inbox_pages_total") < before[i]+3 {
					return false
				}
			}
			return true
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			right := true
			for user, posts := range want {
				for _, g := range gateways {
					right = slices.Equal(g.page(t, user), posts) && right
				}
			}
			if right && copied() {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v, right: %v: %v, want %v", what, a.feeds.Inboxes.Current(), right, a.page(t, 2), want[2])
			}
		}
	}
	round := func() {
		for _, g := range gateways {
			for _, author := range []storage.UserID{1, 3, 4} {
				publish(g, author)
			}
		}
	}
	round()
	quiet("at first")
	round()
	server.Kill(t)
	round()
	check.That(t, len(a.page(t, 5)) != 0, "no page while Redis is gone")
	server.Restart(t)
	round()
	quiet("after Redis was killed")
	must.OK(t, a.redis.Client().FlushAll(t.Context()).Err())
	round()
	quiet("after Redis lost everything")

	a.stop()
	before := b.feeds.Inboxes.Current().Done
	round()
	gateways = gateways[1:]
	must.Soon(t, "the other gateway goes on", func() bool {
		s := b.feeds.Inboxes.Current()
		return s != nil && s.Done > before+1_000_000 && slices.Equal(b.page(t, 2), want[2])
	})
	// On a busy machine posts come later than Through allows here, which ends all inboxes again and again. The
	// rounds go on until one has been copied, and has found out that user 1 is hot.
	for end := time.Now().Add(time.Minute); ; {
		round()
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until) && !b.hasCopied(t); time.Sleep(20 * time.Millisecond) {
			b.page(t, 2)
		}
		if b.hasCopied(t) {
			break
		}
		must.That(t, !time.Now().After(end), "no post was copied, or nobody found to be hot")
	}
}

// hasCopied reports whether the gateway has copied posts, and user 1 is known to be hot.
func (g *feedGateway) hasCopied(t *testing.T) bool {
	hot := g.redis.Client().Keys(t.Context(), "*:inbox:{state}:hot").Val()
	return g.counted(t, "kith_feed_inbox_writes_total") > 0 &&
		len(hot) == 1 && g.redis.Client().HGet(t.Context(), hot[0], "1").Val() == "1"
}
