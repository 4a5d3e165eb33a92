package localcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/events"
)

// postReads is a store whose reads of posts are counted, and may be held back.
func postReads(inner *oracle.Store, hold func()) (*double.Store, *atomic.Int64) {
	store, keys := double.Of(inner), new(atomic.Int64)
	double.After(store, func(_ storage.Side, ids []storage.PostID, _ []storage.Result[storage.Post]) {
		keys.Add(int64(len(ids)))
		hold()
	}, storage.PostLookups)
	return store, keys
}

func writtenPost(t *testing.T, store storage.Store, id storage.PostID) {
	t.Helper()
	post := storage.PostRow{PostID: id, Key: fmt.Sprint(id.Number), Text: "first", At: 1}
	_, _, err := store.Publish(t.Context(), post)
	must.OK(t, err)
}

func edited(t *testing.T, store storage.Store, id storage.PostID, text string) {
	t.Helper()
	_, _, err := store.EditPost(t.Context(), id, storage.PostChange{Text: &text}, 2)
	must.OK(t, err)
}

// Posts, and the absence of a post, are kept until an event says that they have changed.
func TestPostsAreKeptUntilTheyChange(t *testing.T) {
	inner := oracle.New()
	people(t, inner, 3)
	store, read := postReads(inner, func() {})
	cache := newCache(t, store, 1<<20)
	hub := hubOf(t, cache)
	one, other, none := storage.PostID{Author: 1, Number: 7}, storage.PostID{Author: 1, Number: 8}, storage.PostID{Author: 1, Number: 9}
	writtenPost(t, inner, one)
	writtenPost(t, inner, other)
	all := []storage.PostID{one, other, none, one}
	ask := func() []storage.Result[storage.Post] { return storage.PostLookups.Read(t.Context(), cache, all...) }
	for range 3 {
		check.Equal(t, "posts", ask(), storage.PostLookups.Read(t.Context(), inner, all...))
	}
	check.Equal(t, "posts that were read, each of three once", read.Load(), 3)
	var b storage.Bundle
	posts := storage.PostLookups.Ask(&b, all...)
	cache.AtHand(&b)
	check.That(t, !posts.Open(), "posts that are kept are not at hand")
	favorite := storage.Edge{From: 3, To: one.Author, Item: one.Number, Type: storage.Following, UpdateTime: 5}
	for what, change := range map[string]struct {
		event events.Event
		reads int64
	}{
		"an edit":                     {events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: one}, News: storage.PostEdited}}, 1},
		"a deletion":                  {events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: other}, News: storage.PostDeleted}}, 1},
		"a publication":               {events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: none}, News: storage.PostPublished}}, 1},
		"a favorite":                  {events.Event{Row: storage.Row{Side: storage.FavoriteInbox, Edge: favorite}}, 1},
		"all posts of an author":      {events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: storage.PostID{Author: 1}}, News: storage.PostEdited}}, 3},
		"an author whose writer died": {events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Missed}}, 3},
		"a gap":                       {events.Event{Kind: events.Gap}, 3},
	} {
		ask()
		before := read.Load()
		hub.Publish(change.event)
		must.Soon(t, what+" is noticed", func() bool { ask(); return read.Load() >= before+change.reads })
		ask()
		check.Equal(t, what+": posts that were read again", read.Load()-before, change.reads)
	}
}

// A load after a change does not get the answer of a read that began before it: neither of the post alone, nor on a page.
func TestAPostThatChangesWhileItIsRead(t *testing.T) {
	one := storage.PostID{Author: 1, Number: 7}
	for what, changed := range map[string]storage.PostID{"the post": one, "its author": {Author: 1}} {
		for _, onPage := range []bool{false, true} {
			inner := oracle.New()
			people(t, inner, 1)
			writtenPost(t, inner, one)
			began, goOn := make(chan struct{}, 9), make(chan struct{})
			hold := func() { began <- struct{}{}; <-goOn }
			store, _ := postReads(inner, hold)
			double.After(store, func(storage.Side, []storage.PlaceQuery, []storage.Result[[]storage.Post]) { hold() }, storage.PostPageLookups)
			cache := newCache(t, store, 1<<20)
			text := func() string {
				if onPage {
					return storage.PostPageLookups.Read(t.Context(), cache, storage.PlaceQuery{Of: storage.PostID{Author: 1}, Limit: 5})[0].Value[0].Text
				}
				return storage.PostLookups.Read(t.Context(), cache, one)[0].Value.Text
			}
			var reading sync.WaitGroup
			reading.Go(func() { text() })
			<-began
			edited(t, inner, one, "second")
			cache.Apply(context.Background(), storage.Change{Posts: []storage.ChangedPost{{PostAt: storage.PostAt{PostID: changed}}}}, true)
			reading.Go(func() {
				check.Equal(t, fmt.Sprintf("what is read once %s has changed, on a page: %t", what, onPage), text(), "second")
			})
			select {
			case <-began: // the second reader reads for itself
			case <-time.After(10 * time.Second):
				t.Errorf("%s has changed (on a page: %t): who asks waits for the read that began before", what, onPage)
			}
			close(goOn)
			reading.Wait()
			check.Equal(t, fmt.Sprintf("what is kept once %s has changed, on a page: %t", what, onPage), text(), "second")
		}
	}
}

// A row that a token names is included in the post that is read next.
func TestAPostIsExpectedToHaveAFavorite(t *testing.T) {
	inner := oracle.New()
	people(t, inner, 2)
	one := storage.PostID{Author: 1, Number: 7}
	writtenPost(t, inner, one)
	cache := newCache(t, inner, 1<<20)
	count := func() int64 { return storage.PostLookups.Read(t.Context(), cache, one)[0].Value.Counts.Favorites }
	count()
	row := storage.Row{Side: storage.FavoriteInbox, Edge: storage.Edge{From: 2, To: 1, Item: 7, Type: storage.Following, UpdateTime: 5}}
	must.OK(t, inner.Apply(t.Context(), row.Side, []storage.Edge{row.Edge}, storage.IfNewer)[0].Err)
	cache.RequireRows([]storage.Row{row})
	check.Equal(t, "favorites", count(), 1)
}

// What the memory has answered is counted for the request that has asked.
func TestKeysInMemoryAreCounted(t *testing.T) {
	inner := oracle.New()
	people(t, inner, 3)
	cache := newCache(t, inner, 1<<20)
	storage.UserLookups.Read(t.Context(), cache, 1, 2)
	ctx, reads := storage.CountReads(t.Context(), false)
	storage.UserLookups.Read(ctx, cache, 1, 2, 3)
	check.Equal(t, "of 3 users in memory", reads.Log().Memory, 2)
}

// A long post with files takes the space that it needs.
func TestLongPostsTakeRoom(t *testing.T) {
	inner := oracle.New()
	people(t, inner, 1)
	id := storage.PostID{Author: 1, Number: 1}
	media := make([]storage.Media, storage.MaxMedia)
	for i := range media {
		media[i] = storage.Media{Name: strings.Repeat("n", storage.MaxMediaNameLength), URL: strings.Repeat("u", storage.MaxMediaURLLength), Kind: storage.Image}
	}
	post := storage.PostRow{PostID: id, Key: "k", Text: strings.Repeat("ü", storage.MaxPostLength), Media: media, At: 1}
	_, _, err := inner.Publish(t.Context(), post)
	must.OK(t, err)
	cache, m := measured(t, inner, 1<<20)
	storage.PostLookups.Read(t.Context(), cache, id)
	takes(t, m, 2*2000+9*600, 12_000)
}

// TestRandomHistoryOfPosts: one gateway writes through this cache, another one without it, with events that come
// late, twice and in any order, while reads take their time. Own writes are visible at once, and the other
// gateway's writes once their events have come.
func TestRandomHistoryOfPosts(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 4))
			var mu sync.Mutex // protects random, for reads in the background
			draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
			const users, posts = 4, 6
			inner := oracle.New()
			people(t, inner, users)
			store, _ := postReads(inner, func() { time.Sleep(time.Duration(draw(200)) * time.Microsecond) })
			cache := newCache(t, store, 1<<20)
			hub := hubOf(t, cache)
			var pending []events.Event
			take := func(w storage.Change) { pending = append(pending, events.Of(w)...) }
			own := watch.Watch(inner, func(_ context.Context, w storage.Change) { cache.Apply(context.Background(), w, true) })
			others := watch.Watch(inner, func(_ context.Context, w storage.Change) { take(w) })
			ids := make([]storage.PostID, posts)
			for i := range ids {
				ids[i] = storage.PostID{Author: storage.UserID(1 + i%users), Number: int64(i + 1)}
			}
			end := allTheTime(func() { storage.PostLookups.Read(t.Context(), cache, ids[draw(posts)], ids[draw(posts)]) })
			comments := []storage.CommentID{}
			for step := range 150 {
				writer, id, by := own, ids[draw(posts)], storage.UserID(1+draw(users))
				if draw(2) == 0 {
					writer = others
				}
				at, written := storage.Micros(step+1), false
				switch draw(7) {
				case 0, 1:
					_, _, _ = writer.Publish(t.Context(), storage.PostRow{PostID: id, Key: fmt.Sprint(id.Number), Text: "t", At: at})
				case 2:
					text := fmt.Sprint(step)
					_, _, err := writer.EditPost(t.Context(), id, storage.PostChange{Text: &text}, at)
					written = err == nil
				case 3:
					c := storage.Comment{CommentID: storage.CommentID{Author: id.Author, Number: int64(1000 + step)}, Post: id.Number, By: by, Key: fmt.Sprint(step), Text: "c", CreatedAt: at}
					if _, _, err := writer.AddComment(t.Context(), c); err == nil {
						written = true
						comments = append(comments, c.CommentID)
					}
				case 4:
					if n := len(comments); n > 0 {
						c := comments[draw(n)]
						_, _ = writer.DeleteComment(t.Context(), c, c.Author)
					}
				case 5:
					change := id.Favorite(storage.EdgeType(draw(2)), at)
					writer.ChangeEdges(t.Context(), storage.Favorites, by, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true, Inverse: true})
				case 6:
					if step%40 == 0 {
						_, _ = writer.DeletePost(t.Context(), id)
					}
				}
				if writer == own && written {
					want := storage.PostLookups.Read(t.Context(), inner, id)
					check.Equal(t, fmt.Sprintf("step %d, of a writer", step), storage.PostLookups.Read(t.Context(), cache, id), want)
				}
				for n := draw(3); n > 0 && len(pending) > 0; n-- {
					i := draw(len(pending))
					hub.Publish(pending[i])
					if draw(4) > 0 {
						pending = append(pending[:i], pending[i+1:]...)
					}
				}
			}
			for _, e := range pending {
				hub.Publish(e)
			}
			end()
			want := storage.PostLookups.Read(t.Context(), inner, ids...)
			must.Soon(t, fmt.Sprintf("the cache has %+v", want), func() bool {
				return reflect.DeepEqual(storage.PostLookups.Read(t.Context(), cache, ids...), want)
			})
		})
	}
}
