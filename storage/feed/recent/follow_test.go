package recent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

// world is a store with a follower of its posts.
type world struct {
	*Follower
	store  *double.Store
	broken atomic.Bool  // it cannot be read
	reads  atomic.Int64 // of the store
	number int64
}

func newWorld(t *testing.T, authors int) *world {
	t.Helper()
	store := double.Of(oracle.New())
	var users []storage.User
	for id := range authors {
		users = append(users, storage.User{ID: storage.UserID(id + 1), Handle: fmt.Sprintf("user_%d", id+1), Name: "A"})
	}
	store.CreateUsers(t.Context(), users)
	w := &world{store: store, Follower: &Follower{
		Posts: New(1<<20, time.Now), Source: store, Hub: events.NewHub(nil), Logger: slog.New(slog.DiscardHandler),
		times: times{often: time.Millisecond, oftenBack: time.Second, seldom: 5 * time.Millisecond, seldomBack: time.Minute, retry: time.Millisecond},
	}}
	store.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
		w.reads.Add(1)
		if w.broken.Load() {
			b.Fail(errors.New("broken"))
		}
		store.Store.Bundle(ctx, b)
	}
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(w.Start(ctx))
	t.Cleanup(func() { cancel(); running.Wait() })
}

// publish publishes a post some time ago, without an event.
func (w *world) publish(t *testing.T, author storage.UserID, ago time.Duration) storage.PostAt {
	t.Helper()
	w.number++
	p, _, err := w.store.Publish(t.Context(), storage.PostRow{
		PostID: storage.PostID{Author: author, Number: w.number}, Key: fmt.Sprint(w.number), Text: "a", At: storage.MicrosOf(time.Now().Add(-ago)),
	})
	must.OK(t, err)
	return p.At()
}

// wait waits until there are n posts.
func (w *world) wait(t *testing.T, n int) {
	t.Helper()
	must.Soon(t, fmt.Sprint(n, " posts"), func() bool { return w.Posts.Len() == n })
}

func TestPostsOfTheWindowAreLoaded(t *testing.T) {
	w := newWorld(t, 3)
	for i := range 30 {
		w.publish(t, storage.UserID(1+i%3), time.Duration(i)*12*time.Hour) // 14 of the last 7 days
	}
	w.broken.Store(true)
	w.start(t)
	for w.reads.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	check.Least(t, "the floor before they are loaded", w.Posts.Floor(), storage.MicrosOf(time.Now()))
	w.broken.Store(false)
	w.wait(t, 14)
	ago := time.Since(w.Posts.Floor().Time())
	check.That(t, ago >= Window && ago <= Window+time.Hour, "all of the last %s are here", ago)
}

func TestOnlyAsManyAreLoadedAsThereIsRoomFor(t *testing.T) {
	w := newWorld(t, 1)
	w.Posts.bytes = 16 * 100
	for i := range 200 {
		w.publish(t, 1, time.Duration(i)*time.Minute)
	}
	posts, floor, err := w.readAll(t.Context())
	check.That(t, len(posts) >= 100 && len(posts) <= 200 && err == nil, "%d posts, %v", len(posts), err)
	if oldest := posts[0].CreatedAt; floor != oldest {
		t.Errorf("all after %s, want %s", floor.Time(), oldest.Time())
	}
}

// manyShards is a source whose shards have a post a second.
type manyShards struct {
	storage.Answering
	shards int
	posts  atomic.Int64 // that were read
}

func (m *manyShards) Shards() int { return m.shards }

// What a gateway reads when it starts depends on what it keeps, and not on the number of shards.
func TestWhatIsReadAtTheStartIsBounded(t *testing.T) {
	now := time.Now()
	for _, shards := range []int{1, 50} {
		source := &manyShards{shards: shards}
		storage.RecentPostLookups.AnsweredBy(&source.Answering, func(_ context.Context, queries []storage.ShardQuery[storage.Place]) []storage.Result[[]storage.PostAt] {
			return storage.Each(queries, func(q storage.ShardQuery[storage.Place]) (r storage.Result[[]storage.PostAt]) {
				const second = storage.Micros(time.Second / time.Microsecond)
				at := min(q.After.CreatedAt-1, storage.MicrosOf(now))
				for at -= at % second; at >= q.Until && len(r.Value) < q.Limit; at -= second {
					id := storage.PostID{Author: storage.UserID(1 + q.Shard), Number: int64(at)}
					r.Value = append(r.Value, storage.PostAt{PostID: id, CreatedAt: at})
				}
				source.posts.Add(int64(len(r.Value)))
				return r
			})
		})
		const room = 100_000
		f := &Follower{Posts: New(16*room, func() time.Time { return now }), Source: source, Logger: slog.New(slog.DiscardHandler)}
		posts, floor, err := f.readAll(t.Context())
		must.OK(t, err)
		check.Least(t, "posts", len(posts), room)
		check.Most(t, "posts that were read", source.posts.Load(), 2*room+int64(shards)*loadPage)
		newer := int(storage.MicrosOf(now)-floor) / 1_000_000 * shards // all of them are among the posts
		check.That(t, len(posts) >= newer, "%d posts, and %d are newer than the floor", len(posts), newer)
	}
}

func TestPostsAreFoundWithoutTheirEvents(t *testing.T) {
	w := newWorld(t, 2)
	heard := w.Hub.Subscribe(t.Context(), 2)
	w.start(t)
	w.Hearing(true) // but events do not come
	for w.polled.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	posts := []storage.PostAt{w.publish(t, 2, 0), w.publish(t, 2, 30*time.Second)} // the second one came late
	w.wait(t, 2)
	for range posts {
		select {
		case e := <-heard.Events():
			check.That(t, e.Post.News == storage.PostPublished && (e.Post.PostAt == posts[0] || e.Post.PostAt == posts[1]), "%+v", e)
		case <-time.After(20 * time.Second):
			t.Fatal("nobody was notified")
		}
	}
	w.broken.Store(true)
	for before := w.reads.Load(); w.reads.Load() < before+3; {
		time.Sleep(time.Millisecond)
	}
	w.publish(t, 1, 0)
	w.broken.Store(false)
	w.wait(t, 3)
}

func TestEventsAreTakenIn(t *testing.T) {
	w := newWorld(t, 1)
	w.times.seldom = time.Hour
	w.Hearing(true)
	w.start(t)
	for w.polled.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	post := storage.PostAt{PostID: storage.PostID{Author: 1, Number: 7}, CreatedAt: storage.MicrosOf(time.Now())}
	w.Hub.Publish(events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: post, News: storage.PostPublished}}, events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: post, News: storage.PostPublished}})
	w.wait(t, 1)
	w.Hub.Publish(events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: post.PostID}, News: storage.PostDeleted}})
	w.wait(t, 0)
	w.publish(t, 1, 0)
	polled := w.polled.Load()
	time.Sleep(20 * time.Millisecond)
	check.Equal(t, "reads while events come", w.polled.Load(), polled)
	w.Hub.Publish(events.Event{Kind: events.Gap})
	w.wait(t, 1)
	w.publish(t, 1, 0)
	loads := w.loads.Load()
	w.ReadAgain() // while events come, it would look in an hour
	for w.loads.Load() == loads {
		time.Sleep(time.Millisecond)
	}
	w.wait(t, 2)
	w.publish(t, 1, 0)
	w.Hearing(false)
	w.wait(t, 3)
}

// TestWhatChangesDuringALoadCounts, so that writers see their posts.
func TestWhatChangesDuringALoadCounts(t *testing.T) {
	p := New(1<<20, time.Now)
	p.beginLoad()
	now := storage.MicrosOf(time.Now())
	one := func(n int64) storage.PostAt {
		return storage.PostAt{PostID: storage.PostID{Author: 1, Number: n}, CreatedAt: now + storage.Micros(n)}
	}
	p.Add(one(3))
	p.Remove(one(1).PostID)
	check.That(t, p.install([]storage.PostAt{one(1), one(2)}, 0) && p.Len() == 2, "%d posts", p.Len())
	p.beginLoad()
	for n := range int64(mostWaiting + 1) {
		p.Add(one(n))
	}
	before := p.Len()
	check.That(t, !p.install(nil, 0) && p.Len() == before, "a load counts during which too much has changed")
}

// Posts of the future are not read before their time, however often the store is asked.
func TestPostsOfTheFutureAreNotLoaded(t *testing.T) {
	w := newWorld(t, 2)
	w.publish(t, 1, -time.Hour)
	w.publish(t, 2, 0)
	w.start(t)
	w.wait(t, 1)
	w.publish(t, 1, -2*time.Hour)
	w.publish(t, 1, 0)
	w.wait(t, 2)
}

// While the clock is ahead, posts look old when they come. They are found once it is set right.
func TestPostsAreFoundAfterTheClockIsSetBack(t *testing.T) {
	w := newWorld(t, 1)
	var ahead atomic.Int64
	w.Posts.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w.start(t)
	polls := func() {
		for before := w.polled.Load(); w.polled.Load() < before+20; time.Sleep(time.Millisecond) {
		}
	}
	ahead.Store(int64(2 * time.Hour))
	polls()
	w.publish(t, 1, 10*time.Minute) // long before the clock is set back
	polls()
	ahead.Store(0)
	w.wait(t, 1)
	w.publish(t, 1, 0)
	w.wait(t, 2)
	check.Most(t, "what is said to be known", w.Posts.Through(), storage.MicrosOf(time.Now()))
}
