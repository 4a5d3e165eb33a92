package social

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/feed/recent"
)

// TestFeedsOfMany: pages of the feed of a user who follows many are those of brute force, in each of the ways
// in which the store is read, and if memory has only the last posts.
func TestFeedsOfMany(t *testing.T) {
	store := oracle.New()
	const people, posts = 60, 500
	createUsers(t, store, people)
	random := rand.New(rand.NewPCG(1, 2))
	var edges []storage.Edge
	follows := map[storage.UserID]bool{}
	for id := storage.UserID(2); id <= people; id++ {
		if random.IntN(3) > 0 {
			edges, follows[id] = append(edges, storage.Edge{From: 1, To: id, Type: storage.Following, UpdateTime: 1}), true
		}
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	began := storage.MicrosOf(time.Now())
	var all []storage.PostAt
	for n := range posts {
		at := began + storage.Micros(n/3) // some have the same time
		p, _, err := store.Publish(t.Context(), storage.PostRow{
			PostID: storage.PostID{Author: storage.UserID(1 + min(random.IntN(people), random.IntN(people))), Number: int64(posts - n)}, Key: fmt.Sprint(n), Text: "x", At: at,
		})
		must.OK(t, err)
		if follows[p.Author] {
			all = append(all, p.At())
		}
	}
	slices.SortFunc(all, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
	ofTheFuture := storage.PostRow{PostID: storage.PostID{Author: all[0].Author, Number: posts + 1}, Key: "later", Text: "x", At: began + 1e6*3600}
	_, _, err := store.Publish(t.Context(), ofTheFuture)
	must.OK(t, err)
	some := recent.NewSince(1<<20, time.Now, all[120].CreatedAt)
	for _, p := range all {
		some.Add(p)
	}
	g := New(store, 0, nil)
	for name, f := range map[string]*Feeds{
		"by the author":    {Shards: store.Shards},
		"by time":          {Shards: store.Shards, fewAuthors: 1},
		"after memory":     {Shards: store.Shards, Recent: some},
		"memory, and time": {Shards: store.Shards, Recent: some, fewAuthors: 1},
	} {
		feed := feedOf(t, f, g)
		for _, size := range []int{1, 7, 50} {
			var after storage.Place
			for from := 0; ; from += size {
				if feed.Left.spent() {
					feed = feedOf(t, f, g)
				}
				page, err := feed.Page(t.Context(), after, size)
				want := all[min(from, len(all)):min(from+size, len(all))]
				got := storage.Each(page.Rows, storage.Post.At)
				more := from+size < len(all)
				must.That(t, err == nil && slices.Equal(got, want) && page.More == more && page.Complete, "%s, %d behind %d: more: %v, complete: %v, %v:\ngot  %v\nwant %v", name, size, from, page.More, page.Complete, err, got, want)
				if after = want[len(want)-1].Place(); !more {
					break
				}
				if from == 3*size {
					from = len(all)/2 - size
					after = all[from+size-1].Place()
				}
			}
		}
		for _, n := range []int{0, 1, 20, 99, 100, 101, 200} {
			if feed.Left.spent() {
				feed = feedOf(t, f, g)
			}
			rows, more, err := feed.Newer(t.Context(), all[n].Place())
			check.That(t, err == nil && len(rows) == min(n, MostNewer) && more == (n > MostNewer), "%s: %d newer ones, more: %v, %v; want %d", name, len(rows), more, err, n)
		}
	}
}

func feedOf(t *testing.T, f *Feeds, g *Graph) *Feed {
	t.Helper()
	feed, err := f.Of(t.Context(), g, FeedOf{User: 1})
	must.OK(t, err)
	return feed
}

// TestAFeedEndsWithItsBudget, and goes on from there, if hardly any post is by a following.
func TestAFeedEndsWithItsBudget(t *testing.T) {
	store := oracle.New()
	createUsers(t, store, 4)
	store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}, {From: 1, To: 4, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	for n := range int64(2*byTime*byTimeMost/10 + 10) {
		author := storage.UserID(3)
		if n == 0 {
			author = 2
		}
		_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: author, Number: n + 1}, Key: fmt.Sprint(n), Text: "x", At: storage.Micros(n + 1)})
		must.OK(t, err)
	}
	feed := feedOf(t, &Feeds{Shards: store.Shards, fewAuthors: 1, scansMost: 1}, New(store, 0, nil))
	var after storage.Place
	pages := 1
	for ; ; pages++ {
		page, err := feed.Page(t.Context(), after, 5)
		must.That(t, err == nil && page.Complete == (len(page.Rows) > 0) && page.More == !page.Complete, "%+v, %v", page, err)
		if after = page.End; !page.More {
			break
		}
	}
	check.Equal(t, "pages", pages, 3)
}

// silent is a store that does not answer one look-up: that of posts, or else of the last posts.
func silent(store *oracle.Store, posts bool) *double.Store {
	s := double.Of(store)
	if posts {
		double.Before(s, func(context.Context, []storage.PostID) error { return storage.ErrUnavailable }, storage.PostLookups)
	} else {
		double.Before(s, func(context.Context, []storage.LastQuery) error { return storage.ErrUnavailable }, storage.LastPostLookups)
	}
	return s
}

// TestAFeedIsWholeOrUnavailable: a page does not leave out the posts of a shard that does not answer.
func TestAFeedIsWholeOrUnavailable(t *testing.T) {
	store := oracle.New()
	createUsers(t, store, 2)
	store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	posts := recent.NewSince(1<<20, time.Now, 0)
	p, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: 2, Number: 1}, Key: "1", Text: "x", At: storage.MicrosOf(time.Now())})
	must.That(t, err == nil && posts.Add(p.At()), "%v", err)
	for _, mute := range []bool{true, false} {
		feed := feedOf(t, &Feeds{Shards: store.Shards, Recent: posts}, New(silent(store, mute), 0, nil))
		page, err := feed.Page(t.Context(), storage.Place{}, 5)
		check.That(t, errors.Is(err, storage.ErrUnavailable), "posts: %v: %+v, %v", mute, page, err)
	}
	check.Equal(t, "posts that are known", posts.Len(), 1)
}

// Posts of hot authors are read with the page. The page fails if that read fails.
func TestPullingTheHotFailsWithItsRead(t *testing.T) {
	store := oracle.New()
	w := &feedWalk{
		Feed:  &Feed{Feeds: &Feeds{}, store: silent(store, false), hides: func(storage.UserID) bool { return false }},
		inbox: &inboxOf{hot: idset.Of([]storage.UserID{2})}, at: storage.Place{CreatedAt: 1},
	}
	rows, err := w.addHot(t.Context(), nil, storage.Place{CreatedAt: 9}, 5)
	check.That(t, errors.Is(err, storage.ErrUnavailable), "%v, %v", rows, err)
}

// If the request has not enough left for the posts of hot authors, the page ends before them.
func TestPullingTheHotEndsWithTheAllowance(t *testing.T) {
	from, left := storage.Place{CreatedAt: 9}, new(Allowance)
	left.take(allowance - 2)
	w := &feedWalk{
		Feed:  &Feed{Feeds: &Feeds{}, FeedOf: FeedOf{Left: left}, store: oracle.New(), hides: func(storage.UserID) bool { return false }},
		inbox: &inboxOf{hot: idset.Of([]storage.UserID{2, 3, 4})}, at: storage.Place{CreatedAt: 1},
	}
	ended := make(chan bool)
	go func() {
		rows, err := w.addHot(t.Context(), []storage.Post{{CreatedAt: 5}}, from, 5)
		check.That(t, len(rows) == 0 && err == nil && w.at == from && w.cut, "%v, %v, at %+v, cut: %t", rows, err, w.at, w.cut)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
}

// If posts are being loaded again during a walk through a feed, the walk does not move on: the store has the posts.
func TestAWalkStaysWhilePostsAreLoaded(t *testing.T) {
	w := &feedWalk{Feed: &Feed{Feeds: &Feeds{Recent: recent.New(1<<20, time.Now)}, authors: idset.Of([]storage.UserID{2}), hides: func(storage.UserID) bool { return false }}}
	rows, further, err := w.inMemory(t.Context(), 5, 0)
	check.That(t, len(rows) == 0 && !further && err == nil && w.at == (storage.Place{}), "%v, %v, at %+v", rows, err, w.at)
}

// The followings of a user are read as one packed list, if they are packed.
func TestFollowingsArePacked(t *testing.T) {
	store := oracle.New()
	store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}, {From: 1, To: 4, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	reader := &packingStore{Answerer: store, packed: func(storage.UserID) bool { return true }}
	g := New(reader, 0, nil)
	g.sizes.packedFrom = 2
	set, whole, err := g.Followings(t.Context(), 1)
	check.That(t, err == nil && whole && slices.Equal(set.IDs(), []storage.UserID{2, 4}) && reader.packedLists == 1 && reader.rowLists == 0, "%v, whole: %v, %v; %d packed lists and %d of rows", set, whole, err, reader.packedLists, reader.rowLists)
	f := &failing{Answerer: store, bad: 1}
	_, _, err = New(f, 0, nil).Followings(t.Context(), 1)
	check.That(t, errors.Is(err, errRead) && f.reads == 1, "%v, after %d reads", err, f.reads)
}

// TestHiddenRowsAreReplacedWithinTheRequest: pages of hidden rows examine a thousand each, and all pages of a request together no more
// than its allowance.
func TestHiddenRowsAreReplacedWithinTheRequest(t *testing.T) {
	var left Allowance
	examined := 0
	read := func(after storage.Place, limit int) ([]storage.Post, error) {
		rows := make([]storage.Post, limit)
		for i := range rows {
			rows[i].CreatedAt = after.CreatedAt - storage.Micros(i+1)
		}
		examined += limit
		return rows, nil
	}
	pages := 0
	for ; !left.spent(); pages++ {
		rows, _ := read(storage.Place{CreatedAt: 1e9}, 11)
		page, err := Show(&left, rows, 11, 10, func(storage.Post) bool { return false }, storage.Post.Place, read)
		must.That(t, err == nil && len(page.Rows) == 0 && page.More && page.End.CreatedAt == 1e9-storage.Micros(examined), "%+v, %v after %d", page, err, examined)
		check.That(t, examined >= latestBudget || left.spent(), "%d rows are examined", examined)
		examined = 0
	}
	check.Equal(t, "pages of a thousand rows", pages, 5)
	rows, _ := read(storage.Place{CreatedAt: 1e9}, 11)
	latest, err := left.Latest(storage.Place{CreatedAt: 7}, 10, nil, read)
	check.That(t, err == nil && latest.End.CreatedAt == 7 && latest.More, "%+v, %v", latest, err)
	shown, err := Show(&left, rows, 11, 10, func(storage.Post) bool { return true }, storage.Post.Place, read)
	check.That(t, err == nil && len(shown.Rows) == 10 && examined == 11, "what has been read is shown: %d rows, %v", len(shown.Rows), err)
}
