package resolvers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/graph/cursor"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/watch"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/feed/recent"
	"kith/storage/sqlstore"
)

// manyFollowings is how many users somebody follows who follows very many, and how many are on each of its lists.
const manyFollowings = 5000

// followsMany fills a store, and returns the ids of lists: user 1 follows many others, who are also on its lists. Each of the others has
// published so many posts, some weeks ago.
func followsMany(t testing.TB, store storage.Store, others, posts, lists int) (ids []string) {
	t.Helper()
	apitest.Users(t, store, others+1)
	var edges []storage.Edge
	var rows []storage.PostRow
	for by := storage.UserID(2); by <= storage.UserID(others+1); by++ {
		edges = append(edges, storage.Edge{From: 1, To: by, Type: storage.Following, UpdateTime: apitest.Epoch})
		for n := range posts {
			rows = append(rows, storage.PostRow{PostID: storage.PostID{Author: by, Number: int64(n + 1)}, Key: fmt.Sprint(n), Text: strings.Repeat("word ", 56), At: manyAt(n*others + int(by))})
		}
	}
	for some := range slices.Chunk(edges, 1000) {
		apitest.Apply(t, store, some...)
	}
	for some := range slices.Chunk(rows, 1000) {
		for _, r := range store.Restore(t.Context(), storage.Restored{Posts: some}) {
			must.That(t, r.Err == nil && r.Value, "restore a post: %+v", r)
		}
	}
	for n := range lists {
		id := storage.ListID{Owner: 1, Number: int64(n + 1)}
		_, _, err := store.CreateList(t.Context(), storage.UserList{ListID: id, Name: fmt.Sprint("many ", n)})
		must.OK(t, err)
		for some := range slices.Chunk(edges, 1000) {
			members := storage.Each(some, func(e storage.Edge) storage.Edge {
				e.Item, e.Type = id.Kind(), storage.Related
				return e
			})
			must.All(t, store.Apply(t.Context(), storage.Relations, members, storage.IfNewer))
		}
		ids = append(ids, fmt.Sprintf("list_1_%d", n+1))
	}
	return ids
}

// manyAt is when the nth post of all was published.
func manyAt(n int) storage.Micros { return apitest.Epoch + storage.Micros(n)*1_000_000 }

// feedQueries are dear feeds of user 1, whom [followsMany] has made, behind the posts in memory.
func feedQueries(others, posts int, lists []string) []struct{ name, query string } {
	same := `feed(first: 1) { nodes { id } }`
	pages := func(kind cursor.Kind, field string, n int, first, rest string) string {
		var text strings.Builder
		for i := range n {
			at := manyAt((i + 1) * others * posts / (n + 1))
			fmt.Fprintf(&text, "f%d: %s(first: %s, after: %q) { %s }\n", i, field, first, (*cursor.Sealer)(nil).Encode(kind, int64(at), 1), rest)
		}
		return text.String()
	}
	cursors := func(n int, first, rest string) string { return pages(cursor.Feed, "feed", n, first, rest) }
	each := func(list []string) string {
		var text strings.Builder
		for i, id := range list {
			fmt.Fprintf(&text, "f%d: feed(first: 1, only: {list: %q}) { nodes { id } }\n", i, id)
		}
		return text.String()
	}
	all := []struct{ name, query string }{
		{"one", same}, {"10 equal", aliased(10, same)}, {"19 equal", aliased(19, same)}, {"210 equal", aliased(210, same)},
		{"10 pages", cursors(10, "1", "nodes { id }")}, {"210 pages", cursors(210, "1", "nodes { id }")},
		{"210 long pages", cursors(210, "100", "pageInfo { hasNextPage }")}, {"40 long pages with texts", cursors(40, "100", "nodes { text }")},
		{"210 counts", strings.ReplaceAll(cursors(210, "1", "newerThan { count }"), "after", "newerThan")},
		{"one list", each(lists[:1])}, {"a list 19 times", each(slices.Repeat(lists[:1], 19))}, {"19 lists", each(lists)},
	}
	for i := range all {
		all[i].query = "{ viewer { " + all[i].query + " } }"
	}
	newest := pages(cursor.LatestPosts, "latestPosts", 210, "100", "pageInfo { hasNextPage }")
	return append(all, struct{ name, query string }{"210 pages of the latest posts", "{ " + newest + " }"})
}

// TestFeedsOfARequestShareWhatTheyRead: whatever feeds a request asks for, with cursors that no answer has had, it reads no more than
// some pages alone may. A page that others have left nothing of is empty, says so, and goes on from where it was asked for.
func TestFeedsOfARequestShareWhatTheyRead(t *testing.T) {
	var recorder apitest.Recorder
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1), StatementTimeout: generous, OnStatement: recorder.Observe})
	const others, posts = 700, 3
	lists := followsMany(t, store, others, posts, 19)
	api := apitest.New(t, store, apitest.Options{}).As(1)
	rows := func(query string) (n int) {
		t.Helper()
		recorder.Take()
		api.Ask(query, nil).Whole()
		for _, s := range recorder.Take() {
			n += s.Keys + s.Rows
		}
		return n
	}
	one := rows(`{ viewer { feed(first: 1) { nodes { id } } } }`)
	for _, q := range feedQueries(others, posts, lists) {
		got := rows(q.query)
		check.That(t, got <= 40_000 && (got == one || !strings.Contains(q.name, "equal")), "%s: %d keys and rows, at most 40,000; one takes %d", q.name, got, one)
	}
	fields := make([]string, 60)
	for i := range fields {
		place := (*cursor.Sealer)(nil).Encode(cursor.Feed, int64(manyAt(others*posts-i*others/30)), 1)
		fields[i] = fmt.Sprintf("m%d: markFeedSeen(upTo: %q) { viewer { feed(first: 1, after: %q) { nodes { id } } } }", i, place, place)
	}
	check.Most(t, fmt.Sprintf("keys and rows of a mutation of %d fields", len(fields)), rows("mutation { "+strings.Join(fields, "\n")+" }"), 40_000+100*len(fields))

	// Beside other work there is less left: users whom nobody knows cost, and take hardly any.
	nobody := make([]string, 100)
	for i := range nobody {
		nobody[i] = fmt.Sprintf("%q", fmt.Sprint(900_000+i))
	}
	costly := fmt.Sprintf("users(by: {ids: [%s]}) { a: followings(first: 100) { nodes { id name } } b: followings(first: 99) { nodes { id name } } }", strings.Join(nobody, ","))
	pages210 := feedQueries(others, posts, lists)[5].query
	alone, beside, both := rows(pages210), rows("{ "+costly+" }"), rows("{ "+costly+pages210[1:])
	check.Most(t, "twice the keys and rows of feeds beside costly fields, of those alone", 2*(both-beside), alone)

	short := 0
	asked := strings.ReplaceAll(feedQueries(others, posts, lists)[5].query, "nodes { id }", "...P")
	pages := api.Ask(asked+" fragment P on FeedConnection { nodes { id } complete pageInfo { hasNextPage endCursor } }", nil).Whole()
	for i := range 210 {
		place := fmt.Sprintf("viewer.f%d", i)
		if pages.At(place+".complete") == true {
			continue
		}
		short++
		must.That(t, pages.At(place+".pageInfo.hasNextPage") == true && len(pages.At(place+".nodes").([]any)) == 0, "%v", pages.At(place))
		if short > 3 {
			continue
		}
		const page = `query($after: String) { viewer { feed(first: 1, after: $after) { complete nodes { id } } } }`
		at := manyAt((i + 1) * others * posts / 211)
		want := api.Ask(page, apitest.Vars{"after": (*cursor.Sealer)(nil).Encode(cursor.Feed, int64(at), 1)}).Whole()
		got := api.Ask(page, apitest.Vars{"after": pages.At(place + ".pageInfo.endCursor")})
		check.That(t, want.At("viewer.feed.complete") == true && got.Text == want.Text, "page %d goes on with %s, want %s", i, got.Text, want.Text)
	}
	check.Least(t, "pages that were not read whole", short, 1)
}

// BenchmarkDearFeeds asks for feeds as a user who follows 5,000 others, cold, behind the posts in memory: processor time and memory, with SQLite's.
//
//	go test ./resolvers -run '^$' -bench BenchmarkDearFeeds -benchtime 3x
func BenchmarkDearFeeds(b *testing.B) {
	store := opened.Store(b, sqlstore.Config{Location: apitest.Location(b, 1), StatementTimeout: generous})
	lists := followsMany(b, store, manyFollowings, 5, 19)
	feeds := &social.Feeds{Recent: recent.NewSince(1<<20, time.Now, manyAt(5*manyFollowings+10))}
	api := apitest.New(b, store, apitest.Options{Feeds: feeds}).As(1)
	for _, q := range feedQueries(manyFollowings, 5, lists) {
		b.Run(q.name, func(b *testing.B) {
			answer := api.With("Kith-Cost", "1").Ask(q.query, nil).Whole()
			cost, _ := answer.Extensions["cost"].(map[string]any)["estimated"].(json.Number).Float64()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := testenv.ProcessorTime()
			for b.Loop() {
				api.Ask(q.query, nil).Whole()
			}
			took := testenv.ProcessorTime() - began
			runtime.ReadMemStats(&after)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "cpu-ms")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6/float64(b.N), "MB")
			b.ReportMetric(cost, "cost")
		})
	}
}

// TestPagesOfAListShareWhatTheyRead: different pages of one list of matches are the pages that each would be alone, and take little more
// than one of them.
func TestPagesOfAListShareWhatTheyRead(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1), StatementTimeout: generous})
	const others = 1500
	followsMany(t, store, others, 0, 0)
	var back []storage.Edge
	for by := storage.UserID(2); by <= others+1; by += 2 {
		back = append(back, storage.Edge{From: by, To: 1, Type: storage.Following, UpdateTime: apitest.Epoch})
		if by > 2 {
			back = append(back, storage.Edge{From: by, To: 2, Type: storage.Following, UpdateTime: apitest.Epoch})
		}
	}
	for some := range slices.Chunk(back, 1000) {
		apitest.Apply(t, store, some...)
	}
	api := apitest.New(t, store, apitest.Options{}).As(1)
	const user = "{ user(by: {id: %d}) { %s } }"
	for _, l := range []struct {
		of            int
		field, others string
	}{
		{1, "friends", ""}, {1, "notFollowingBack", ""}, {1, "notFollowedBack", ""}, {2, "followersYouKnow", ""},
		{1, "commonFollowers", ", with: 2, orderBy: RECENT"},
	} {
		page := func(arguments string) string {
			return l.field + "(" + arguments + l.others + ") { totalCount complete nodes { id } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }"
		}
		cursors, _ := api.Ask(fmt.Sprintf(user, l.of, page("first: 50")), nil).Whole().At("user." + l.field + ".edges").([]any)
		pages := []string{page("first: 0"), page("first: 100")}
		for i := range min(20, len(cursors)) {
			at := cursors[2*i].(map[string]any)["cursor"]
			pages = append(pages, page(fmt.Sprint("first: ", i+1)), page(fmt.Sprintf("first: %d, after: %q", i, at)))
			if i%10 == 9 {
				pages = append(pages, page(fmt.Sprint("last: ", i)), page(fmt.Sprintf("last: %d, before: %q", i, at)), page(fmt.Sprintf("first: 7, before: %q", at)))
			}
		}
		bytes := func(query string) (answer apitest.Answer, taken uint64) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer = api.Ask(fmt.Sprintf(user, l.of, query), nil).Whole()
			runtime.ReadMemStats(&after)
			return answer, after.TotalAlloc - before.TotalAlloc
		}
		var all strings.Builder
		for i, p := range pages {
			fmt.Fprintf(&all, "a%d: %s\n", i, p)
		}
		together, taken := bytes(all.String())
		var most uint64
		for i, p := range pages {
			alone, one := bytes("a: " + p)
			most = max(most, one)
			check.Equal(t, p, fmt.Sprint(together.At(fmt.Sprint("user.a", i))), fmt.Sprint(alone.At("user.a")))
		}
		check.Most(t, l.field+", bytes of all pages", taken, 6*most)
	}
}

// warmStore is a store whose requests read through a cache.
type warmStore struct {
	*watch.Store
	cache *localcache.Cache
}

func newWarmStore(t testing.TB, store *sqlstore.Store) *warmStore {
	c := localcache.New(localcache.Config{Store: store, Bytes: 64 << 20})
	t.Cleanup(c.Close)
	return &warmStore{watch.Watch(store, func(ctx context.Context, w storage.Change) { c.Apply(ctx, w, true) }), c}
}

func (w *warmStore) Beneath() storage.Store                        { return w.Store.Store }
func (w *warmStore) AtHand(b *storage.Bundle)                      { w.cache.AtHand(b) }
func (w *warmStore) Bundle(ctx context.Context, b *storage.Bundle) { w.cache.Bundle(ctx, b) }

// TestAWarmFeedTakesNoStatement, and neither do posts by id.
func TestAWarmFeedTakesNoStatement(t *testing.T) {
	for _, shards := range []int{1, 4} {
		var recorder apitest.Recorder
		store := opened.Store(t, sqlstore.Config{Location: ringOn(t, kindOfRing{shards: shards}), StatementTimeout: generous, OnStatement: recorder.Observe})
		posts := recent.NewSince(1<<20, time.Now, 0)
		api := apitest.New(t, newWarmStore(t, store), apitest.Options{Feeds: &social.Feeds{Recent: posts}}).As(2)
		id := ""
		for by := storage.UserID(3); by < 43; by++ {
			id = publish(t, api, by, "x", by.String())
		}
		for query, want := range map[string]costs{
			`{ viewer { feed(first: 20) { nodes { id text commentCount favoritesReceivedCount author { name followerCount viewerRelationship { status } } } complete } } }`: {},
			`{ viewer { feed(first: 20) { nodes { viewerHasFavorited author { name } } } } }`:                                                                               {},
			fmt.Sprintf(`{ node(id: %q) { ... on Post { text author { name } } } }`, id):                                                                                    {},
		} {
			api.Ask(query, nil).Whole()
			recorder.Take()
			api.Ask(query, nil).Whole()
			check.Equal(t, fmt.Sprintf("%d shards: %s", shards, query), recorder.Take().MostOnOneShard(), want)
		}
	}
}
