package recent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/events"
	"kith/storage/sleep"
)

// Follower keeps recent posts right. Posts come in four ways:
//
//   - All of them are read from the store when it starts, by ranges of each shard.
//   - Events report each post that is published or deleted from then on.
//   - The newest posts of each shard are read again and again. That finds a post whose event did not come,
//     because its gateway was killed or because the gateways have no bus.
//   - After a shard was restored, all are read again: while it was, readers of its posts noticed that some were gone. So they are
//     after this machine's clock was set back by more than a minute.
//
// A post that was deleted without its event stays. Readers of the posts of a page notice.
type Follower struct {
	Posts  *Posts
	Source storage.ShardAnswerer // where posts come from
	Hub    *events.Hub           // of this gateway: it reports the posts that were read without an event
	Logger *slog.Logger

	// Late is how long after its time a post may become known, in addition to the time between reads of the store. Zero
	// is a minute.
	Late time.Duration

	// Times that tests change; zero stands for [defaultTimes].
	times times

	hearing atomic.Bool
	again   atomic.Bool // all posts are to be read again
	polled  atomic.Int64
	found   atomic.Int64
	loads   atomic.Int64
}

// times are how often the newest posts are read, and how far back.
type times struct {
	often     time.Duration // how often, unless events come
	oftenBack time.Duration
	// Now and then posts are read from further back: a transaction may take long, and clocks
	// differ.
	seldom     time.Duration
	seldomBack time.Duration
	retry      time.Duration // after a shard has not answered
}

var defaultTimes = times{
	often: 100 * time.Millisecond, oftenBack: 3 * time.Second,
	seldom: 5 * time.Second, seldomBack: time.Minute,
	retry: time.Second,
}

const (
	loadPage = 10_000 // posts that are read at a time
	pollPage = 1000
)

// Hearing says whether the events of all other gateways come, or there are no other gateways.
func (f *Follower) Hearing(is bool) {
	if f.hearing.Swap(is) && !is {
		f.Posts.wake.Wake()
	}
}

// ReadAgain has all posts read again.
func (f *Follower) ReadAgain() {
	f.again.Store(true)
	f.Posts.wake.Wake()
}

// Start subscribes to events, and returns the function that keeps the posts right until the context
// is done.
func (f *Follower) Start(ctx context.Context) (run func()) {
	if f.times == (times{}) {
		f.times = defaultTimes
	}
	if f.Late > 0 {
		f.times.seldomBack, f.times.seldom = f.Late, min(f.times.seldom, f.Late)
	}
	subscription := f.subscribe(ctx)
	return func() {
		var running sync.WaitGroup
		running.Go(func() { f.take(ctx, subscription) })
		if began, ok := f.load(ctx); ok {
			f.poll(ctx, began)
		}
		running.Wait()
	}
}

func (f *Follower) subscribe(ctx context.Context) *events.Subscription {
	return f.Hub.SubscribeTo(ctx, events.PostChanged, 0)
}

// take takes events in. If some may be missing, it wakes the goroutine that reads the store.
func (f *Follower) take(ctx context.Context, subscription *events.Subscription) {
	for {
		for e := range subscription.Events() {
			f.Posts.Apply(e.Post)
			if e.Kind == events.Gap {
				f.Posts.wake.Wake()
			}
		}
		if !errors.Is(subscription.Err(), events.ErrSlow) {
			return
		}
		subscription = f.subscribe(ctx)
		f.Posts.wake.Wake()
	}
}

// load reads the posts of the window, and repeats that until it succeeds. It returns when it began.
func (f *Follower) load(ctx context.Context) (began storage.Micros, ok bool) {
	for ctx.Err() == nil && f.Posts.bytes > 0 {
		began = storage.MicrosOf(f.Posts.now())
		f.Posts.beginLoad()
		posts, floor, err := f.readAll(ctx)
		if err != nil {
			posts, floor = nil, math.MaxInt64
		}
		if f.Posts.install(posts, floor) && err == nil {
			f.loads.Add(1)
			return began, true
		}
		if ctx.Err() == nil {
			f.Logger.WarnContext(ctx, "cannot read recent posts: home feeds come from the databases until it works", "error", err)
		}
		_ = sleep.For(ctx, f.times.retry)
	}
	return 0, false
}

// firstLook is how far back all shards are read at first. They are read twice as far as long as there is room: a whole window of every
// shard may be many times what is kept.
const firstLook = Window / 512

// readAll reads the posts of the window from all shards, as many as there is room for and up to as many again, oldest first.
func (f *Follower) readAll(ctx context.Context) (all []storage.PostAt, floor storage.Micros, err error) {
	const leastBytes = 16
	room, now := int(min(f.Posts.bytes/leastBytes, math.MaxInt32)), f.Posts.now()
	lists := make([][]storage.PostAt, f.Source.Shards())
	errs := make([]error, len(lists))
	after, found := storage.Place{CreatedAt: f.Posts.horizon() + 1}, 0
	for back := firstLook; err == nil && found < room && back <= Window; back *= 2 {
		since := storage.MicrosOf(now.Add(-back))
		var reading sync.WaitGroup
		for shard := range lists {
			reading.Go(func() {
				var more []storage.PostAt
				more, errs[shard] = f.read(ctx, shard, after, since, loadPage, room)
				lists[shard] = append(lists[shard], more...)
			})
		}
		reading.Wait()
		found, err = 0, errors.Join(errs...)
		for _, list := range lists {
			found += len(list)
		}
		after, floor = storage.Place{CreatedAt: since}, since-1
	}
	for _, list := range lists {
		if len(list) >= room {
			floor = max(floor, list[len(list)-1].CreatedAt)
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b storage.PostAt) int {
		return cmp.Or(b.Place().Compare(a.Place()), cmp.Compare(a.Author, b.Author))
	})
	return slices.Compact(all), floor, err
}

// read reads the posts of a shard behind a place and since a time, newest first, some at a time, until there are as many as asked for.
func (f *Follower) read(ctx context.Context, shard int, after storage.Place, since storage.Micros, page, most int) (list []storage.PostAt, err error) {
	query := storage.ShardQuery[storage.Place]{Shard: shard, Until: since, Limit: page, After: after}
	for len(list) < most {
		posts, err := storage.RecentPostLookups.Get(ctx, f.Source, query)
		if err != nil {
			return nil, err
		}
		if list = append(list, posts...); len(posts) < query.Limit {
			break
		}
		query.After = posts[len(posts)-1].Place()
	}
	return list, nil
}

// looked is when a shard was last read.
type looked struct {
	far storage.Micros // with all posts that may have come late
	any storage.Micros
}

// poll reads the newest posts of each shard until the context is done.
func (f *Follower) poll(ctx context.Context, loaded storage.Micros) {
	var shards []looked
	f.settle([]looked{{far: loaded}})
	var last time.Time // when it last looked far back
	for ctx.Err() == nil {
		for len(shards) < f.Source.Shards() {
			shards = append(shards, looked{loaded, loaded})
		}
		far := time.Since(last) >= f.times.seldom
		if far {
			last = time.Now()
		}
		if far || !f.hearing.Load() {
			f.pollAll(ctx, shards, far)
		}
		if f.again.Swap(false) {
			f.load(ctx)
			f.Posts.late.Add(1) // as if some had come late: inboxes that were built meanwhile lack those that have come back
		}
		pause := f.times.often
		if f.hearing.Load() {
			pause = f.times.seldom - time.Since(last)
		}
		if f.Posts.wake.WakesWithin(ctx, pause) {
			last = time.Time{} // events may be missing
		}
	}
}

// pollAll reads each shard once, from some time before it was last read. A shard that does not answer is
// read from the same time on when it does.
func (f *Follower) pollAll(ctx context.Context, shards []looked, far bool) {
	var reading sync.WaitGroup
	for i := range shards {
		reading.Go(func() {
			shard, now := &shards[i], f.Posts.now()
			at := storage.MicrosOf(now)
			since := min(shard.any, at) - storage.Micros(f.times.oftenBack.Microseconds())
			if far {
				since = min(shard.far, at) - storage.Micros(f.times.seldomBack.Microseconds())
			}
			if shard.any > at+storage.Micros(f.times.seldomBack.Microseconds()) { // the clock was set back: while it was ahead, posts looked old
				f.ReadAgain()
			}
			newest := storage.Place{CreatedAt: f.Posts.horizon() + 1}
			list, err := f.read(ctx, i, newest, max(since, storage.MicrosOf(now.Add(-Window))), pollPage, math.MaxInt32)
			f.polled.Add(1)
			if err != nil {
				return
			}
			if shard.any = at; far || shard.far > at {
				shard.far = at
			}
			f.report(list)
		})
	}
	reading.Wait()
	f.settle(shards)
}

// settle sets the time up to which all posts are known: no shard can get a late post from before it.
func (f *Follower) settle(shards []looked) {
	through := storage.Micros(math.MaxInt64)
	for _, one := range shards {
		through = min(through, one.far-storage.Micros(f.times.seldomBack.Microseconds()))
	}
	f.Posts.Settle(through)
}

// report adds posts that were read, and publishes those whose events have not come.
func (f *Follower) report(newestFirst []storage.PostAt) {
	var found storage.Change
	for _, post := range slices.Backward(newestFirst) {
		if f.Posts.Add(post) {
			found.AddPost(storage.PostPublished, post)
		}
	}
	f.found.Add(int64(len(found.Posts)))
	f.Hub.Publish(events.Of(found)...)
}
