package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/epoch"
	"kith/storage/feed/recent"
)

// fixture is the inboxes of one gateway. Its posts are those that the test adds.
type fixture struct {
	*Boxes
	t      *testing.T
	client *redis.Client
	now    storage.Micros
	number int64
}

func open(t *testing.T, hot int64) *fixture {
	options, err := redis.ParseURL(testenv.Redis(t).URL())
	must.OK(t, err)
	runs := new(epoch.Runs)
	options.OnConnect, options.ContextTimeoutEnabled = runs.OnConnect, true
	f := &fixture{t: t, client: redis.NewClient(options), now: storage.MicrosOf(time.Now().Add(-time.Hour))}
	t.Cleanup(func() { f.client.Close() })
	store := oracle.New()
	f.Boxes = New(Config{
		Clock: epoch.NewClock(f.client, runs, "kith"), Counts: store, Recent: recent.NewSince(1<<20, time.Now, 0),
		Logger: slog.New(slog.DiscardHandler), Bounds: func() (int64, time.Duration) { return hot, 48 * time.Hour }, Lag: time.Nanosecond, Pause: 2 * time.Millisecond,
	}, nil)
	f.copy()
	return f
}

func (f *fixture) publish(author storage.UserID, n int) (posts []storage.PostAt) {
	for range n {
		f.now++
		f.number++
		p := storage.PostAt{PostID: storage.PostID{Author: author, Number: f.number}, CreatedAt: f.now}
		f.Recent.Add(p)
		posts = slices.Insert(posts, 0, p)
	}
	return posts
}

// copy copies everything that has been published.
func (f *fixture) copy() {
	f.t.Helper()
	f.Recent.Settle(f.now)
	for range 3 {
		must.OK(f.t, f.Tick(f.t.Context()))
	}
	s := f.Current()
	must.That(f.t, s != nil && s.Done == f.now, "not copied: %+v", s)
}

// build builds an inbox without posts.
func (f *fixture) build(user storage.UserID, followings ...storage.UserID) {
	f.t.Helper()
	time.Sleep(3 * time.Millisecond) // the pause
	must.OK(f.t, f.Build(f.t.Context(), user, followings, pulled(nil, 0)))
}

func pulled(posts []storage.PostAt, floor storage.Micros) func(context.Context, []storage.UserID) (recent.Page, error) {
	return func(context.Context, []storage.UserID) (recent.Page, error) {
		return recent.Page{Posts: posts, Through: floor}, nil
	}
}

// page reads a page from the newest post on.
func (f *fixture) page(user storage.UserID, n int, followings []storage.UserID) (recent.Page, bool) {
	q := recent.Query{Authors: idset.Of(followings), After: storage.Place{CreatedAt: f.now + 1}, Limit: n}
	return f.Page(f.t.Context(), f.Current(), user, q)
}

// is reads a whole inbox and checks it.
func (f *fixture) is(user storage.UserID, want []storage.PostAt, floor storage.Micros, followings ...storage.UserID) {
	f.t.Helper()
	slices.Sort(followings)
	page, ok := f.page(user, 2*Capacity, followings)
	if !ok || page.Through != floor || !slices.Equal(page.Posts, want) {
		f.t.Errorf("%v, %d posts down to %d, want %d down to %d", ok, len(page.Posts), page.Through, len(want), floor)
	}
}

func (f *fixture) none(user storage.UserID, followings ...storage.UserID) {
	f.t.Helper()
	page, ok := f.page(user, 1, followings)
	check.That(f.t, !ok, "user %s has an inbox with %v", user, page.Posts)
}

// TestAnInboxIsCapped: at 800 posts it is whole, and one more raises its floor.
func TestAnInboxIsCapped(t *testing.T) {
	f := open(t, 0)
	f.build(1, 2, 3)
	posts := f.publish(2, Capacity)
	f.copy()
	f.is(1, posts, 0, 2, 3)
	posts = append(f.publish(3, 1), posts...)
	f.copy()
	f.is(1, posts[:Capacity], posts[Capacity].CreatedAt, 2, 3)
	f.is(1, posts[:Capacity], posts[Capacity].CreatedAt, 3, 2)
	f.none(1, 2)
	f.none(1, 2, 3, 4)
	n := f.client.ZCard(t.Context(), f.boxKey(1)).Val()
	check.That(t, n == Capacity+1, "%d entries", n) // and the head
}

// TestAnInboxOfOneDayIsKept: reading renews it also if it is kept for no longer than the time between two renewals.
func TestAnInboxOfOneDayIsKept(t *testing.T) {
	f := open(t, 0)
	f.Bounds = func() (int64, time.Duration) { return 0, 24 * time.Hour }
	f.build(1, 2)
	must.OK(t, f.client.Expire(t.Context(), f.boxKey(1), 5*time.Hour).Err())
	f.is(1, nil, 0, 2)
	check.Least(t, "an inbox that was just read is kept for", f.client.TTL(t.Context(), f.boxKey(1)).Val(), 23*time.Hour)
}

// TestAClientThatLeaves: whose request ends while Redis is asked does not take the inboxes from all others.
func TestAClientThatLeaves(t *testing.T) {
	f := open(t, 0)
	f.build(1, 2)
	f.copy()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	f.Page(ctx, f.Current(), 1, recent.Query{Authors: idset.Of([]storage.UserID{2}), After: storage.Place{CreatedAt: f.now + 1}, Limit: 1})
	check.That(t, f.Current() != nil, "inboxes are not used any more")
}

// TestKeysWrittenForAPost: one for each fan that has an inbox, in any number of batches, and none for users who are
// no longer active. The inboxes of these users have a time to live, and after it they are no fans.
func TestKeysWrittenForAPost(t *testing.T) {
	f := open(t, 0)
	f.Batch = 20
	const active = 55
	for user := range storage.UserID(active) {
		f.build(100+user, 2)
	}
	posts := f.publish(2, 1)
	f.publish(3, 1)
	f.copy()
	check.Equal(t, "inboxes that were written", testutil.ToFloat64(f.written), active)
	f.is(100+active-1, posts, 0, 2)
	ttl := f.client.TTL(t.Context(), f.boxKey(100)).Val()
	check.That(t, ttl >= 47*time.Hour && ttl <= 48*time.Hour, "it lives for %s", ttl)
	f.client.Expire(t.Context(), f.boxKey(100), 5*time.Hour)
	f.is(100, posts, 0, 2)
	check.Least(t, "the life of an inbox that was read", f.client.TTL(t.Context(), f.boxKey(100)).Val(), 47*time.Hour)
	for user := range storage.UserID(active - 10) { // they have expired
		f.client.Del(t.Context(), f.boxKey(100+user))
	}
	for range 50 { // each sweep looks at some keys
		f.publish(2, 1)
		f.copy()
		if f.client.HLen(t.Context(), f.fansKey(2)).Val() == 11 {
			break
		}
	}
	before := testutil.ToFloat64(f.written)
	f.publish(2, 1)
	f.copy()
	check.Equal(t, "inboxes were written for 10 fans", testutil.ToFloat64(f.written)-before, 10)
	f.none(100, 2)
}

// TestFansOfTheSilentAreSwept: fans of authors who post nothing are swept, too.
func TestFansOfTheSilentAreSwept(t *testing.T) {
	f := open(t, 0)
	f.build(1, 2)
	f.client.Del(t.Context(), f.boxKey(1))
	for range 20 {
		f.now++
		f.copy()
	}
	check.That(t, f.client.Exists(t.Context(), f.fansKey(2)).Val() == 0, "a user without an inbox is a fan")
}

// TestOnlyTheLastBuildCounts: a build that was overtaken leaves nothing behind.
func TestOnlyTheLastBuildCounts(t *testing.T) {
	f := open(t, 0)
	posts := f.publish(3, 2)
	f.copy()
	err := f.Build(t.Context(), 1, []storage.UserID{2}, func(context.Context, []storage.UserID) (recent.Page, error) {
		time.Sleep(3 * time.Millisecond)
		return recent.Page{}, f.Build(t.Context(), 1, []storage.UserID{3}, pulled(posts, 0))
	})
	check.That(t, errors.Is(err, ErrNotNow), "%v", err)
	f.is(1, posts, 0, 3)
	f.none(1, 2)
}

// TestPostsOfABuild: posts that are copied while an inbox is being built are in it, whether its builder knew of them or not.
func TestPostsOfABuild(t *testing.T) {
	f := open(t, 0)
	var posts []storage.PostAt
	err := f.Build(t.Context(), 1, []storage.UserID{2}, func(context.Context, []storage.UserID) (recent.Page, error) {
		posts = f.publish(2, 3)
		f.copy()
		return recent.Page{}, nil
	})
	must.OK(t, err)
	f.is(1, posts, 0, 2)
	err = f.Build(t.Context(), 5, []storage.UserID{2}, pulled(posts, 0))
	must.OK(t, err)
	f.Recent.Settle(f.now - 1) // like a gateway whose memory is behind
	err = f.Build(t.Context(), 6, []storage.UserID{2}, pulled(nil, 0))
	check.That(t, errors.Is(err, ErrNotNow), "%v", err)
}

// TestInboxesEnd when posts may be missing in them: a post came late, Redis has evicted keys or is emptied, a clock was ahead, or
// the posts are no longer in memory.
func TestInboxesEnd(t *testing.T) {
	for name, what := range map[string]func(f *fixture){
		"a late post": func(f *fixture) {
			f.Recent.Add(storage.PostAt{PostID: storage.PostID{Author: 2, Number: 77}, CreatedAt: f.now - 5})
			check.That(f.t, f.Current() == nil, "inboxes are used")
		},
		"a new epoch": func(f *fixture) { f.Clock.Begin(f.t.Context()) },
		"evicted keys": func(f *fixture) {
			f.client.ConfigSet(f.t.Context(), "maxmemory-policy", "allkeys-random")
			f.client.ConfigSet(f.t.Context(), "maxmemory", "3mb")
			for i := 0; ; i++ {
				f.client.Set(f.t.Context(), fmt.Sprint("x", i), string(make([]byte, 1<<17)), 0)
				if epoch.Field(f.client.Info(f.t.Context(), "stats").Val(), "evicted_keys") != "0" {
					break
				}
			}
			f.client.ConfigSet(f.t.Context(), "maxmemory", "0")
		},
		"a clock that was ahead": func(f *fixture) {
			f.client.HSet(f.t.Context(), f.stateKey(), "done", int64(storage.MicrosOf(time.Now().Add(time.Hour))))
		},
		"lost":    func(f *fixture) { f.client.FlushAll(f.t.Context()) },
		"ages":    func(f *fixture) { f.client.HSet(f.t.Context(), f.stateKey(), "done", 5); f.Recent.Settle(f.now) },
		"nothing": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, 0)
			if name == "ages" {
				f.Boxes.Recent = recent.NewSince(1<<20, time.Now, f.now-100)
			}
			f.publish(2, 10)
			f.copy()
			f.build(1, 2)
			what(f)
			f.Tick(t.Context())
			f.publish(2, 1)
			f.copy()
			page, ok := f.page(1, 1, []storage.UserID{2})
			check.That(t, ok == (name == "nothing"), "%v: %v", ok, page.Posts)
		})
	}
}

// TestOneGatewayCopies: the other gateway takes the lease only when it has ended.
func TestOneGatewayCopies(t *testing.T) {
	f := open(t, 0)
	other := *f
	other.Boxes = New(f.Config, nil)
	f.now++
	other.now = f.now
	f.Recent.Settle(f.now)
	for range 3 {
		must.OK(t, other.Tick(t.Context()))
	}
	s := other.Current()
	check.That(t, s != nil && s.Done != f.now, "both copy: %+v", s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	for other.Current().Done != f.now {
		must.OK(t, other.Tick(t.Context()))
	}
	cancel()
	<-ended
	f.client.Del(t.Context(), f.leaseKey()) // it ends by itself, some seconds later
	other.now++
	other.copy()
	err := f.step(t.Context(), other.Current())
	check.That(t, errors.Is(err, ErrNotNow), "%v", err)
}

// TestMembersAreInTheOrderOfPages: of members of one time, the greater number comes first.
func TestMembersAreInTheOrderOfPages(t *testing.T) {
	f := open(t, 0)
	f.build(1, 2)
	var want []storage.PostAt
	for range 50 {
		want = append(want, storage.PostAt{PostID: storage.PostID{Author: 2, Number: rand.Int64()}, CreatedAt: f.now + 1})
		f.Recent.Add(want[len(want)-1])
	}
	slices.SortFunc(want, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
	f.now++
	f.copy()
	f.is(1, want, 0, 2)
}

// heat is how many followers everybody has.
type heat int64

func (h *heat) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
		return storage.Each(ids, func(storage.UserID) storage.Result[storage.Counts] {
			return storage.Result[storage.Counts]{Value: storage.Counts{Follower: int64(*h)}, Found: true}
		})
	})
}

// An inbox from before an author was hot lacks the posts of that time: it is not used again when the author has cooled.
func TestInboxesFromBeforeAnAuthorWasHot(t *testing.T) {
	f, followers := open(t, 10), new(heat)
	f.Counts = followers
	f.build(1, 7, 8)
	before := f.publish(7, 1)
	f.copy()
	f.is(1, before, 0, 7, 8)
	*followers = 10
	f.publish(7, 2)
	f.copy()
	f.none(1, 7, 8)
	*followers = 1
	f.publish(7, 1)
	f.copy()
	f.copy()
	f.none(1, 7, 8)
	f.build(1, 7, 8)
	after := f.publish(7, 1)
	f.copy()
	f.is(1, after, 0, 7, 8)
}
