package social

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
)

// boxed is a gateway with inboxes, driven step by step.
type boxed struct {
	t      testing.TB
	store  *oracle.Store
	posts  *recent.Posts
	boxes  *inbox.Boxes
	feeds  *Feeds
	redis  *redis.Client
	prefix string
	counts *prometheus.Registry
}

func newBoxed(t testing.TB, store *oracle.Store, url, prefix string, hot int64, floor storage.Micros) *boxed {
	options, err := redis.ParseURL(url)
	must.OK(t, err)
	runs := new(epoch.Runs)
	options.OnConnect, options.ContextTimeoutEnabled = runs.OnConnect, true
	g := &boxed{t: t, store: store, redis: redis.NewClient(options), prefix: prefix, counts: prometheus.NewRegistry(), posts: recent.NewSince(1<<20, time.Now, floor)}
	t.Cleanup(func() { g.redis.Close() })
	logger := slog.New(slog.DiscardHandler)
	g.boxes = inbox.New(inbox.Config{
		Clock: epoch.NewClock(g.redis, runs, prefix), Counts: store, Recent: g.posts, Logger: logger,
		Bounds: func() (int64, time.Duration) { return hot, time.Hour }, Lag: time.Nanosecond, Pause: 2 * time.Millisecond,
	}, g.counts)
	g.feeds = &Feeds{Shards: store.Shards, Recent: g.posts, Inboxes: g.boxes}
	return g
}

// copied takes over the copying for this gateway, and copies posts up to a time.
func (g *boxed) copied(upTo storage.Micros) {
	g.t.Helper()
	g.posts.Settle(upTo)
	for range 20 {
		must.OK(g.t, g.boxes.Tick(g.t.Context()))
		if s := g.boxes.Current(); s != nil && s.Done >= upTo {
			return
		}
	}
	g.t.Fatalf("posts up to %d are not copied: %+v", upTo, g.boxes.Current())
}

// built builds the inboxes that have been asked for.
func (g *boxed) built() {
	g.t.Helper()
	for len(g.boxes.Asked) > 0 {
		one := <-g.boxes.Asked
		for range 5 { // a pause may have to end first
			err := g.feeds.buildInbox(g.t.Context(), New(g.store, 0, nil), one)
			if err == nil {
				break
			}
			must.That(g.t, errors.Is(err, inbox.ErrNotNow), "%v", err)
			time.Sleep(time.Millisecond)
		}
	}
}

func (g *boxed) count(name string) int { return int(metered.Value(g.t, g.counts, name)) }

func (g *boxed) pages(user storage.UserID, size int, from storage.Place) (got []storage.PostAt) {
	for {
		feed, err := g.feeds.Of(g.t.Context(), New(g.store, 0, nil), FeedOf{User: user})
		must.OK(g.t, err)
		page, err := feed.Page(g.t.Context(), from, size)
		must.That(g.t, err == nil && page.Complete, "complete: %t, %v", page.Complete, err)
		for _, p := range page.Rows {
			got = append(got, p.At())
		}
		if !page.More {
			return got
		}
		from = got[len(got)-1].Place()
	}
}

// TestInboxesGiveTheSamePages: pages of two gateways are those of brute force, after any sequence of follows,
// unfollows, posts, deletions, authors who become hot or stop being hot, posts that come late, lost keys, and
// gateways that stop at any point.
func TestInboxesGiveTheSamePages(t *testing.T) {
	url := testenv.Redis(t).URL()
	tries, fromInbox := 0, 0
	drawn := func(r *rapid.T) {
		const people, readers = 8, 4
		tries++
		store := oracle.New()
		createUsers(t, store, people)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		hot := rapid.SampledFrom([]int64{0, 2, 3}).Draw(r, "hot")
		now := storage.MicrosOf(time.Now().Add(-time.Hour))
		floor := rapid.SampledFrom([]storage.Micros{0, now + 40}).Draw(r, "floor")
		prefix := fmt.Sprint("kith:", tries)
		gateways := []*boxed{newBoxed(t, store, url, prefix, hot, floor), newBoxed(t, store, url, prefix, hot, floor)}
		follows := map[storage.Pair]bool{}
		var all []storage.PostAt
		number := int64(0)
		follow := func() {
			pair := storage.Pair{From: storage.UserID(1 + random.IntN(readers)), To: storage.UserID(1 + min(random.IntN(people), random.IntN(people)))}
			if pair.From == pair.To {
				return
			}
			kind := storage.Following
			if follows[pair] {
				kind = storage.None
			}
			now++
			edge := storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: now}
			store.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer)
			if random.IntN(3) > 0 { // the replica may lag as long as it likes
				store.Apply(t.Context(), storage.Inverse, []storage.Edge{edge}, storage.IfNewer)
			}
			follows[pair] = !follows[pair]
		}
		publish := func(late storage.Micros) {
			number++
			now += storage.Micros(random.IntN(3))
			post := storage.PostRow{PostID: storage.PostID{Author: storage.UserID(1 + random.IntN(people)), Number: random.Int64N(1<<40)<<8 + number%256}, Key: fmt.Sprint(number), Text: "x", At: now - late}
			p, _, err := store.Publish(t.Context(), post)
			must.OK(r, err)
			all = append(all, p.At())
			for _, g := range gateways {
				g.posts.Add(p.At())
			}
		}
		for range 20 {
			follow()
		}
		for range rapid.IntRange(20, 60).Draw(r, "steps") {
			g := gateways[random.IntN(2)]
			switch random.IntN(12) {
			case 0, 1:
				follow()
			case 2, 3, 4, 5:
				for range random.IntN(20) {
					publish(0)
				}
			case 6:
				if len(all) > 0 {
					i := random.IntN(len(all))
					store.DeletePost(t.Context(), all[i].PostID) // without the event of the deletion
					all = slices.Delete(all, i, i+1)
				}
			case 7:
				g.redis.Del(t.Context(), prefix+":inbox:{state}:lease") // as if its holder had died
				now += 2
				for _, one := range gateways {
					one.posts.Settle(now - 2)
				}
				g.copied(now - 2)
				publish(0)
			case 8:
				g.dies(random)
			case 9:
				if random.IntN(8) == 0 {
					publish(10)
				}
			case 10:
				if random.IntN(3) == 0 {
					g.lose(random)
				}
			case 11:
				if random.IntN(9) == 0 {
					g.boxes.Clock.Begin(t.Context())
				}
			}
			if random.IntN(3) > 0 {
				continue
			}
			// Once all is quiet, each gateway knows what the other has ended.
			for _, g := range gateways {
				g.boxes.Tick(t.Context())
			}
			for user := range storage.UserID(readers) {
				user++
				var want []storage.PostAt
				for _, p := range all {
					if follows[storage.Pair{From: user, To: p.Author}] {
						want = append(want, p)
					}
				}
				slices.SortFunc(want, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
				size, after := 1+random.IntN(40), storage.Place{}
				if len(want) > 0 && random.IntN(2) == 0 {
					i := random.IntN(len(want))
					after, want = want[i].Place(), want[i+1:]
				}
				for _, g := range gateways {
					if got := g.pages(user, size, after); !slices.Equal(got, want) {
						r.Fatalf("user %d, pages of %d behind %v, floor %d, %+v:\ngot  %v\nwant %v", user, size, after, floor, g.boxes.Current(), got, want)
					}
				}
			}
			if random.IntN(3) > 0 {
				g.built()
			}
		}
		for _, g := range gateways {
			fromInbox += g.count("kith_feed_inbox_pages_total")
		}
	}
	// Some 300 pages come from inboxes, unless the machine is so busy that Redis does not answer in time.
	// More cases are other ones: all of a test binary have one seed.
	for cases := 10; cases <= 320; cases *= 2 {
		if properties.Check(t, cases, drawn); fromInbox >= 10 {
			t.Logf("inboxes were used %d times in %d cases", fromInbox, tries)
			return
		}
	}
	t.Errorf("inboxes were used %d times in %d cases", fromInbox, tries)
}

// dies begins to copy, but does not finish: the context ends after some answers of Redis.
func (g *boxed) dies(random *rand.Rand) {
	ctx, cancel := context.WithCancel(g.t.Context())
	defer cancel()
	var left atomic.Int64 // the cache learns its epoch beside this goroutine
	left.Store(random.Int64N(12))
	g.redis.AddHook(ending{func() {
		if left.Add(-1) == 0 {
			cancel()
		}
	}})
	g.redis.Del(g.t.Context(), g.prefix+":inbox:{state}:lease")
	for range 2 {
		g.boxes.Tick(ctx)
	}
	if len(g.boxes.Asked) > 0 && random.IntN(2) == 0 {
		g.feeds.buildInbox(ctx, New(g.store, 0, nil), <-g.boxes.Asked)
	}
}

// lose loses an inbox, as a Redis that runs out of memory may do.
func (g *boxed) lose(random *rand.Rand) {
	for _, key := range g.redis.Keys(g.t.Context(), g.prefix+":inbox:{*}").Val() {
		if !strings.Contains(key, "state") && random.IntN(2) == 0 {
			g.redis.Del(g.t.Context(), key)
		}
	}
}

// ending calls a function after each exchange with Redis.
type ending struct{ after func() }

func (e ending) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e ending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer e.after()
		return next(ctx, cmd)
	}
}

func (e ending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer e.after()
		return next(ctx, cmds)
	}
}
