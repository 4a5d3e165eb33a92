package resolvers_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/loaders"
	"kith/social"
	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/events"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
	"kith/storage/sqlstore"
)

// loaded returns recent posts that are complete, because the store is empty.
func loaded() *recent.Posts { return recent.NewSince(1<<20, time.Now, 0) }

// feedWay is a way of finding home feeds. A test sets one of them before it asks.
type feedWay struct {
	recent  *recent.Posts
	inboxes *inbox.Boxes
}

func waysOf(feeds *social.Feeds) map[string]feedWay {
	return map[string]feedWay{"in memory": {recent: feeds.Recent}, "from the store": {}}
}

func (w feedWay) set(feeds *social.Feeds) { feeds.Recent, feeds.Inboxes = w.recent, w.inboxes }

// copying holds the parts of a gateway that copy posts into inboxes. A test drives them.
type copying struct {
	posts *recent.Posts
	boxes *inbox.Boxes
	feeds *social.Feeds // they build inboxes
	reads *prometheus.Registry
}

// addInboxes adds the ways push and hybrid, with the number of followers from which an author is hot.
func addInboxes(t *testing.T, ways map[string]feedWay, posts *recent.Posts, store storage.Store, url string) (all []*copying) {
	for name, hot := range map[string]int64{"push": 0, "hybrid": 2} {
		options, err := redis.ParseURL(url)
		must.OK(t, err)
		runs := new(epoch.Runs)
		options.OnConnect, options.ContextTimeoutEnabled = runs.OnConnect, true
		client := redis.NewClient(options)
		t.Cleanup(func() { client.Close() })
		clock := epoch.NewClock(client, runs, "kith:"+t.Name()+name)
		logger := slog.New(slog.DiscardHandler)
		c := &copying{posts: posts, reads: prometheus.NewRegistry()}
		c.boxes = inbox.New(inbox.Config{
			Clock: clock, Counts: store, Recent: posts, Logger: logger,
			Bounds: func() (int64, time.Duration) { return hot, time.Hour }, Lag: time.Nanosecond, Pause: 2 * time.Millisecond,
		}, c.reads)
		graph := func(ctx context.Context) *social.Graph {
			return social.New(loaders.For(loaders.Attach(ctx, store)).Reader(), 0, nil)
		}
		c.feeds = &social.Feeds{Shards: store.(storage.ShardAnswerer).Shards, Recent: posts, Inboxes: c.boxes}
		t.Cleanup(inBackground(func(ctx context.Context) { c.feeds.BuildInboxes(ctx, graph) }))
		ways[name] = feedWay{posts, c.boxes}
		all = append(all, c)
	}
	return all
}

func inBackground(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return func() { cancel(); <-done }
}

// used is how often an inbox was read.
func (c *copying) used(t *testing.T) float64 {
	return metered.Value(t, c.reads, "kith_feed_inbox_pages_total")
}

// copy copies all posts up to a time.
func (c *copying) copy(t *testing.T, upTo storage.Micros) {
	t.Helper()
	c.posts.Settle(upTo)
	must.Soon(t, "all posts are copied", func() bool { // in three ticks it looks, begins and copies
		if err := c.boxes.Tick(t.Context()); err != nil {
			t.Log(err) // a busy Redis may not answer in time
		}
		s := c.boxes.Current()
		return s != nil && s.Done >= upTo
	})
}

// TestFeeds: after any sequence of follows, blocks, posts, edits, deletions and hidden users, the feed of each viewer
// has the posts by users whom it follows and may see. That holds for every way in which a feed is found, page by page.
func TestFeeds(t *testing.T) {
	const people = 6
	url := testenv.Redis(t).URL()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			store := storeOf(t, people)
			feeds := &social.Feeds{Recent: loaded()}
			ways := waysOf(feeds)
			api := apitest.New(t, store, apitest.Options{Feeds: feeds})
			copies := addInboxes(t, ways, feeds.Recent, store, url)
			random := rand.New(rand.NewPCG(seed, 2))
			s := &square{blocks: map[storage.Pair]bool{}, hidden: map[storage.UserID]bool{}, deleted: map[storage.UserID]bool{}}
			follows := map[storage.Pair]bool{}
			for step := range 80 {
				by, other := storage.UserID(1+random.IntN(people)), storage.UserID(1+random.IntN(people))
				switch {
				case random.IntN(3) == 0 && by != other && !s.hidden[by] && !s.hides(by, other) && !s.deleted[by]:
					pair := storage.Pair{From: by, To: other}
					field := "follow"
					if follows[pair] {
						field = "unfollow"
					}
					api.As(by).Ask(`mutation($u: ID!) { `+apitest.Call(field, "$u")+` { changed } }`, apitest.Vars{"u": other}).Whole()
					follows[pair] = !follows[pair]
				case random.IntN(9) == 0 && len(s.posts) > 0:
					if p := s.posts[random.IntN(len(s.posts))]; !s.hidden[p.by] {
						api.As(p.by).Ask(`mutation($p: ID!, $t: String!) { editPost(postId: $p, text: $t) { changed } }`, apitest.Vars{"p": p.id, "t": fmt.Sprint("t", step)}).Whole()
					}
				default:
					s.change(t, api, random, step, by, other)
				}
				for pair, is := range s.blocks {
					if is { // a block ends both follows, and they stay ended
						delete(follows, pair)
						delete(follows, storage.Pair{From: pair.To, To: pair.From})
					}
				}
				if step%8 == 3 {
					upTo := storage.MicrosOf(time.Now())
					for _, c := range copies {
						c.copy(t, upTo)
					}
				}
				if step%8 == 7 {
					for viewer := storage.UserID(1); viewer <= people; viewer++ {
						if !s.deleted[viewer] {
							s.checkFeeds(t, api, feeds, ways, viewer, follows, random)
						}
					}
				}
			}
			for _, c := range copies {
				check.Least(t, "inboxes that were read", c.used(t), 10)
			}
		})
	}
}

const feedPage = `query($first: Int, $after: String, $newer: String) { viewer { feed(first: $first, after: $after, newerThan: $newer) {
	nodes { id author { id } } edges { cursor node { id } } complete pageInfo { hasNextPage startCursor endCursor } newerThan { count hasMore } } } }`

func (s *square) checkFeeds(t *testing.T, api *apitest.API, feeds *social.Feeds, ways map[string]feedWay, viewer storage.UserID, follows map[storage.Pair]bool, random *rand.Rand) {
	t.Helper()
	var want []string
	for _, p := range s.posts {
		if follows[storage.Pair{From: viewer, To: p.by}] && !s.hides(viewer, p.by) {
			want = append(want, p.id)
		}
	}
	size := 1 + random.IntN(7)
	cursors := map[string][]string{}
	for name, way := range ways {
		way.set(feeds)
		if s.hidden[viewer] {
			continue // this viewer has signed out
		}
		var got []string
		for _, answer := range pagesAt(api.As(viewer), feedPage, apitest.Vars{"first": size}, "viewer.feed") {
			got = append(got, strings.Fields(idsAt(answer, "viewer.feed.nodes"))...)
			for _, e := range apitest.Into[[]struct{ Cursor string }](answer, "viewer.feed.edges") {
				cursors[name] = append(cursors[name], e.Cursor)
			}
			check.That(t, answer.At("viewer.feed.complete") == true && answer.At("viewer.feed.newerThan") == nil, "%s: %v", name, answer)
		}
		check.Equal(t, fmt.Sprintf("viewer %s, %s", viewer, name), got, want)
		for i, c := range cursors[name] {
			if i%3 == 0 {
				api.As(viewer).Ask(`query($c: String) { viewer { feed(first: 0, newerThan: $c) { newerThan { count hasMore } } } }`, apitest.Vars{"c": c}).
					Is(fmt.Sprintf(`{"viewer": {"feed": {"newerThan": {"count": %d, "hasMore": false}}}}`, i))
			}
		}
	}
	for name := range ways {
		check.Equal(t, fmt.Sprintf("cursors of viewer %s, %s", viewer, name), cursors["in memory"], cursors[name])
	}
}

// TestStatementsOfAFeedInMemory: a page reads the followings and the blocks, and on each shard takes one statement
// each for posts, authors and relationships, however many posts and followings there are.
func TestStatementsOfAFeedInMemory(t *testing.T) {
	for _, shards := range []int{1, 4} {
		var recorder apitest.Recorder
		store := opened.Store(t, sqlstore.Config{Location: ringOn(t, kindOfRing{shards: shards}), StatementTimeout: generous, OnStatement: recorder.Observe})
		posts := recent.NewSince(1<<20, time.Now, 0)
		api := apitest.New(t, store, apitest.Options{Feeds: &social.Feeds{Recent: posts}})
		for by := storage.UserID(3); by < 103; by++ {
			publish(t, api, by, "x", by.String())
		}
		for _, size := range []int{1, 5, 20} {
			recorder.Take()
			api.As(2).Ask(fmt.Sprintf(`{ viewer { feed(first: %d) { nodes { text commentCount author { name followerCount viewerRelationship { status } } } complete } } }`, size), nil).Whole()
			got := recorder.Take().MostOnOneShard()
			want := costs{"blocks": 1, "counts": 1, "neighbours.following": 1, "pages.relation": 1, "posts": 1, "profiles": 1, "edges.follower": 1, "edges.following": 1, "users": 1}
			check.Equal(t, fmt.Sprintf("%d shards, %d posts", shards, size), got, want)
		}
	}
}

// TestNewerPostsAreCountedToAHundred, and a page is whole even if posts that memory still has are gone from the store.
func TestNewerPostsAreCountedToAHundred(t *testing.T) {
	for name, way := range waysOf(&social.Feeds{Recent: loaded()}) {
		api, store := withUsers(t, 3, apitest.Options{Feeds: &social.Feeds{Recent: way.recent}})
		apitest.Follow(t, store, 1, 2)
		api, author := api.As(1), api.As(2)
		first := publish(t, author, 2, "first", "first")
		cursor := api.Ask(feedPage, apitest.Vars{"first": 1}).Whole().At("viewer.feed.pageInfo.startCursor")
		var ids []string
		for i := range 102 {
			ids = append(ids, publish(t, author, 2, "x", fmt.Sprint(i)))
			if i == 99 || i == 100 {
				api.Ask(`query($c: String) { viewer { feed(first: 0, newerThan: $c) { newerThan { count hasMore } } } }`, apitest.Vars{"c": cursor}).
					Is(fmt.Sprintf(`{"viewer": {"feed": {"newerThan": {"count": 100, "hasMore": %v}}}}`, i == 100))
			}
		}
		for _, id := range ids {
			var number int64
			_, err := fmt.Sscanf(id, "post_2_%d", &number)
			must.OK(t, err)
			_, err = store.DeletePost(t.Context(), storage.PostID{Author: 2, Number: number}) // without the event of the deletion
			must.OK(t, err)
		}
		answer := api.Ask(feedPage, apitest.Vars{"first": 3, "newer": cursor}).Whole()
		got := idsAt(answer, "viewer.feed.nodes")
		check.That(t, strings.HasPrefix(got, first) && fmt.Sprint(answer.At("viewer.feed.newerThan.count")) == "0", "%s: got %s and %v newer ones, want %s and none", name, got, answer.At("viewer.feed.newerThan.count"), first)
	}
}

func TestFeedItems(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		answers := subscribe(t, v.api, v.hub, v.a, `subscription { postAdded { edge { cursor node { id text author { handle } } } } }`)
		v.does(v.a, "follow", v.b)
		n := 0
		write := func(by storage.UserID) string {
			n++
			return publish(t, v.api, by, fmt.Sprint("t", n), fmt.Sprint("k", n))
		}
		until(t, answers, func(int) { write(v.b) })
		want := func(by storage.UserID) {
			t.Helper()
			id := write(by)
			for answer := range answers {
				if strings.Contains(answer, fmt.Sprintf(`"node":{"id":%q,"text":"t%d","author":{"handle":"u%s"}}`, id, n, by)) {
					return
				}
				must.That(t, strings.Contains(answer, fmt.Sprintf(`"handle":"u%s"`, v.b)), "%s came, not %s", answer, id) // posts from the beginning may come late
			}
		}
		v.later.Store(int64(time.Hour)) // a post that is ahead of the clock
		want(v.b)
		v.later.Store(0)
		want(v.b)
		write(v.c) // the viewer does not follow c
		v.hub.Publish(events.Event{Kind: events.Gap})
		want(v.b)
		v.does(v.a, "unfollow", v.b)
		write(v.b)
		v.does(v.a, "follow", v.c)
		v.hub.Publish(events.Event{Kind: events.Gap}) // the subscription then reads again whom the viewer follows
		for {
			id := write(v.c)
			select {
			case answer := <-answers:
				must.That(t, strings.Contains(answer, fmt.Sprintf(`"handle":"u%s"`, v.c)), "%s came, and %s is awaited", answer, id)
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// The event of a follow, or of a list's new member, may come after those of posts that were published later, or not at all: then it is
// told that something of the viewer was missed.
func TestPostsAheadOfTheEventOfAFollowAreSent(t *testing.T) {
	onShards(t, apitest.Options{Redundancy: never{}}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.b)
		list := v.createList(v.a, false, v.b)
		for k, c := range []struct {
			field string
			side  storage.Side
			ahead time.Duration // is the clock that writes the follow
			joins func()
		}{
			{`postAdded`, storage.Forward, 0, func() { v.does(v.a, "follow", v.c) }},
			{`postAdded # missed`, storage.Forward, 0, func() { v.does(v.a, "follow", v.d) }},
			{`postAdded(only: {special: true})`, storage.Forward, time.Hour, func() {
				v.api.As(v.a).Ask(fmt.Sprintf(`mutation { setFollowMark(userId: "%s", special: true) { changed } }`, v.d), nil).Whole()
			}},
			{fmt.Sprintf(`postAdded(only: {list: %q})`, list), storage.Relations, 0, func() {
				v.api.As(v.a).Ask(fmt.Sprintf(`mutation { addToList(listId: %q, userIds: ["%s"]) { changed } }`, list, v.c), nil).Whole()
			}},
		} {
			author, known := v.c, v.b
			special, missed := strings.Contains(c.field, "special"), strings.Contains(c.field, "missed")
			if special || missed {
				author = v.d
			}
			if special {
				v.api.As(v.a).Ask(fmt.Sprintf(`mutation { setFollowMark(userId: "%s", special: true) { changed } }`, known), nil).Whole()
			}
			answers := subscribe(t, v.api, v.hub, v.a, "subscription { "+c.field+"\n { edge { node { text } } } }")
			until(t, answers, func(i int) { publish(t, v.api, known, "known", fmt.Sprint(k, "-", i)) })
			c.joins()
			id := storage.Pair{From: v.a, To: author}
			if c.side == storage.Relations {
				id.Item = listID(t, list).Kind()
			}
			publish(t, v.api, author, "new", fmt.Sprint(k))
			edge := storage.EdgeLookups[c.side].Read(t.Context(), v.store, id)[0].Value
			edge.UpdateTime += storage.Micros(c.ahead.Microseconds())
			if missed {
				v.hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: v.a, What: storage.Missed}})
			} else {
				v.hub.Publish(events.Event{Row: storage.Row{Side: c.side.Replica(), Edge: edge}})
			}
			comes(t, answers, `"new"`) // those of the known author may come late
		}
	})
}

// How far the viewer has seen its feed is kept by the server: it only moves forward, and is there on every device.
func TestFeedSeen(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.b)
		phone, laptop := v.api.As(v.a), v.api.As(v.a)
		const look = `{ viewer { feedSeenUpTo feed(first: 10) { edges { cursor node { text createdAt } } unseen { count hasMore } } } }`
		phone.Ask(look, nil).Is(`{"viewer": {"feedSeenUpTo": null, "feed": {"edges": [], "unseen": null}}}`)
		for _, text := range []string{"one", "two", "three"} {
			v.pass(time.Second)
			publish(t, v.api, v.b, text, text)
		}
		type edge struct {
			Cursor string
			Node   struct{ Text, CreatedAt string }
		}
		edges := apitest.Into[[]edge](phone.Ask(look, nil).Whole(), "viewer.feed.edges")
		must.That(t, len(edges) == 3 && edges[0].Node.Text == "three", "the feed is %+v", edges)
		see := func(e edge, changed bool) {
			t.Helper()
			phone.Ask(`mutation($upTo: String!) { markFeedSeen(upTo: $upTo) { changed viewer { user { id } } } }`, apitest.Vars{"upTo": e.Cursor}).
				Is(fmt.Sprintf(`{"markFeedSeen": {"changed": %t, "viewer": {"user": {"id": "%s"}}}}`, changed, v.a))
		}
		seen := func(e edge, unseen int) {
			t.Helper()
			laptop.Ask(`{ viewer { feedSeenUpTo feed { unseen { count hasMore } newerThan { count } } } }`, nil).
				Is(fmt.Sprintf(`{"viewer": {"feedSeenUpTo": %q, "feed": {"unseen": {"count": %d, "hasMore": false}, "newerThan": null}}}`, e.Node.CreatedAt, unseen))
		}
		see(edges[1], true)
		seen(edges[1], 1)
		see(edges[2], false)
		seen(edges[1], 1)
		see(edges[0], true)
		see(edges[0], false)
		seen(edges[0], 0)
		v.api.As(v.c).Ask(`{ viewer { feedSeenUpTo feed { unseen { count } } } }`, nil).Is(`{"viewer": {"feedSeenUpTo": null, "feed": {"unseen": null}}}`)
		for _, wrong := range []string{"", "x", phone.Ask(`{ latestPosts(first: 1) { edges { cursor } } }`, nil).Whole().At("latestPosts.edges").([]any)[0].(map[string]any)["cursor"].(string)} {
			phone.Ask(`mutation($upTo: String!) { markFeedSeen(upTo: $upTo) { changed } }`, apitest.Vars{"upTo": wrong}).Refused("BAD_USER_INPUT")
		}
		v.api.Ask(`mutation { markFeedSeen(upTo: "x") { changed } }`, nil).Refused("UNAUTHENTICATED")
	})
}

// A post that is published once more, by its client key, is not sent again, however long it is since it was published.
func TestFeedItemsAreNew(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.b)
		v.pass(-time.Hour)
		old := publish(t, v.api, v.b, "old", "old")
		v.pass(time.Hour)
		answers := subscribe(t, v.api, v.hub, v.a, `subscription { postAdded { edge { node { id } } } }`)
		until(t, answers, func(i int) { publish(t, v.api, v.b, "new", fmt.Sprint("new", i)) })
		must.Equal(t, "published again as", publish(t, v.api, v.b, "old", "old"), old)
		last := publish(t, v.api, v.b, "last", "last")
		for answer := range answers {
			must.That(t, !strings.Contains(answer, old), "an old post was sent as new")
			if strings.Contains(answer, last) {
				return
			}
		}
	})
}

// A post whose gateway was killed before it told of it is sent after the gap, also if its clock was behind and others have posted since. Nothing
// that was there before is sent.
func TestFeedHearsOfWhatASlowClockHasWritten(t *testing.T) {
	v := settle(t, oracle.New(), apitest.Options{})
	v.does(v.a, "follow", v.b)
	v.does(v.a, "follow", v.c)
	v.pass(-20 * time.Second)
	publish(t, v.api, v.b, "before", "before")
	v.pass(20 * time.Second)
	answers := subscribe(t, v.api, v.hub, v.a, `subscription { postAdded { edge { node { text } } } }`)
	until(t, answers, func(i int) { publish(t, v.api, v.b, "first", fmt.Sprint(i)) })
	at := v.now() - 59_500_000
	_, _, err := v.store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: v.c, Number: int64(at)}, Key: "k", Text: "slow", At: at})
	must.OK(t, err)
	time.Sleep(time.Second)
	for _, text := range []string{"second", "slow", "last"} {
		if text == "slow" {
			v.hub.Publish(events.Event{Kind: events.Gap})
		} else {
			publish(t, v.api, v.b, text, text)
		}
		for got := ""; !strings.Contains(got, text); { // more of the first may come
			got = next(t, answers)
			check.Lacks(t, "what is sent", got, "before")
		}
	}
}
