package social

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
)

// A home feed is worked out for each page: the newest posts of those whom the viewer follows at
// that moment. Memory holds where posts are in time, and nothing about who follows whom: a follow,
// a block or a deleted post counts at once. Deleted posts that are still in memory are noticed when
// they are read.
//
// A page is found in the first of these ways that reaches far enough back:
//
//   - in the viewer's inbox, and among the newest posts in memory: see inboxes.go;
//   - among the recent posts in memory;
//   - by author: which followings have posted before that time, and when last, then posts of those
//     with the latest of these times;
//   - if there are too many followings for that, among all posts of each shard by time, as far as
//     the budget allows.
//
// What the pages of one feed have in common is read once in a request, and all pages in a request share an [Allowance].

// Feeds are the home feeds.
type Feeds struct {
	Shards  func() int    // of the store that graphs read
	Recent  *recent.Posts // nil: all is read from the store
	Inboxes *inbox.Boxes  // nil: there are none; they need Recent

	// Values that tests change: they replace maxFeedAuthors and byTimeMost, unless zero.
	fewAuthors, scansMost int
}

// FeedPage is a page of a home feed.
type FeedPage struct {
	Page[storage.Post]
	// Complete: no followings, and no posts up to the end of the page, were left out for a budget.
	Complete bool
}

const (
	// maxFeedAuthors is the number of followings up to which posts are read by author: each takes an
	// entry of an index.
	maxFeedAuthors = 10_000
	// byTime is how many posts of a shard are read together otherwise.
	byTime = 1000
	// byTimeMost is how often that is done for a page.
	byTimeMost = 10

	// MostNewer is up to how many posts that are newer than a place are counted.
	MostNewer = 100
)

// FeedOf says whose posts are in a feed.
type FeedOf struct {
	User storage.UserID // who reads it, without the users whom it mutes
	// Only reads whose posts are in it. Nil: they are of those whom User follows.
	Only func(context.Context) (*idset.Set, error)
	// Opens reports which users' posts User may see. It is asked only about those whose posts come next. Nil: all.
	Opens func(ctx context.Context, users []storage.UserID) ([]bool, error)
	Left  *Allowance // nil: a whole one
}

// Feed is one feed during a request.
type Feed struct {
	*Feeds
	FeedOf
	store   storage.Answerer
	authors *idset.Set
	whole   bool // authors are all whose posts are in it
	unread  bool // the allowance is spent: it is not known who they are
	hides   func(storage.UserID) bool
	top     storage.Place           // ahead of all posts
	judged  map[storage.UserID]bool // by Opens
	last    []lastPosts
}

// lastPosts are the authors who have posts up to a time, and when they published the last of them, the latest first.
type lastPosts struct {
	upTo storage.Micros
	list []storage.PostAt
}

// Of begins a feed.
func (f *Feeds) Of(ctx context.Context, g *Graph, of FeedOf) (*Feed, error) {
	of.Left = cmp.Or(of.Left, new(Allowance))
	of.Left.mu.Lock()
	defer of.Left.mu.Unlock()
	feed := &Feed{Feeds: f, FeedOf: of, store: g.store, authors: idset.Of(nil), whole: true, hides: g.audience.Hides, judged: map[storage.UserID]bool{}}
	feed.top.CreatedAt = storage.MicrosOf(time.Now().Add(recent.Ahead)) + 1
	var err error
	switch {
	case of.Only == nil:
		feed.authors, feed.whole, err = g.Followings(ctx, of.User)
	case of.Left.spent():
		feed.unread = true
	default:
		if feed.authors, err = of.Only(ctx); err == nil {
			of.Left.take(feed.authors.Len())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read whose posts are in a feed of user %s: %w", of.User, err)
	}
	muted, err := g.Related(ctx, of.User, OutOfFeeds...)
	if err != nil {
		return nil, err
	}
	if len(muted) > 0 {
		feed.hides = func(id storage.UserID) bool { return g.audience.leavesOut(id, muted) }
	}
	return feed, nil
}

// Page returns the posts of a feed, newest first, behind a place.
func (f *Feed) Page(ctx context.Context, after storage.Place, size int) (page FeedPage, err error) {
	f.Left.mu.Lock()
	defer f.Left.mu.Unlock()
	w := f.walk(after)
	rows, cut, err := w.first(ctx, size)
	page.Rows, page.More = rows[:min(size, len(rows))], cut || len(rows) > size
	if cut {
		page.End = w.at
	} else {
		page.Complete = w.whole
	}
	return page, err
}

// Newer returns the posts of a feed that are newer than a place, newest first, MostNewer at
// most. There are more if more is true.
func (f *Feed) Newer(ctx context.Context, than storage.Place) (rows []storage.Post, more bool, err error) {
	f.Left.mu.Lock()
	defer f.Left.mu.Unlock()
	w := f.walk(storage.Place{})
	w.until = than
	rows, cut, err := w.first(ctx, MostNewer)
	return rows[:min(MostNewer, len(rows))], cut || len(rows) > MostNewer, err
}

// Followings reads whom a user follows. The set is not whole if there are more followings than the
// budget allows.
func (g *Graph) Followings(ctx context.Context, user storage.UserID) (set *idset.Set, whole bool, err error) {
	p := &neededList{List: List{storage.Forward, user}}
	parts := []*neededList{p}
	g.recall(ctx, parts)
	g.measure(ctx, parts)
	if p.err == nil {
		g.unpack(ctx, parts)
	}
	whole = p.set != nil || p.length <= int64(g.budget)
	switch {
	case p.set != nil || p.err != nil:
	case whole:
		g.read(ctx, parts)
	default:
		g.readRange(ctx, p, 0, int(g.budget))
	}
	return p.set, whole, p.err
}

// feedWalk goes back through a feed.
type feedWalk struct {
	*Feed
	until storage.Place // only posts that are newer, unless zero
	inbox *inboxOf      // nil: the viewer's inbox is not used, or not any more

	at       storage.Place // posts ahead of it have been returned
	ended    bool          // there are no more
	tooFar   bool          // the posts in memory do not reach that far
	cut      bool          // the request has not enough left for what comes next
	examined int
	scans    int
}

func (f *Feed) walk(after storage.Place) *feedWalk {
	if after == (storage.Place{}) {
		after = f.top
	}
	w := &feedWalk{Feed: f, at: after, ended: f.authors.Len() == 0 && !f.unread}
	if f.Only == nil {
		w.inbox = f.inbox()
	}
	return w
}

// first returns n posts, and one more if there is one; fewer if there are no others, or if a budget has cut the walk.
func (w *feedWalk) first(ctx context.Context, n int) (rows []storage.Post, cut bool, err error) {
	for len(rows) <= n && !w.ended {
		if w.spent() {
			return rows, true, nil
		}
		some, err := w.next(ctx, n+1-len(rows))
		if err != nil {
			return nil, false, fmt.Errorf("read the feed of user %s: %w", w.User, err)
		}
		rows = append(rows, some...)
	}
	return rows, false, nil
}

// next returns more posts, about as many as are wanted, and moves behind them.
func (w *feedWalk) next(ctx context.Context, wanted int) (rows []storage.Post, err error) {
	if w.inbox != nil {
		if rows, ok, err := w.inInbox(ctx, wanted); ok || err != nil {
			return rows, err
		}
		w.inbox = nil
	}
	return w.pull(ctx, wanted)
}

// pull is next without an inbox.
func (w *feedWalk) pull(ctx context.Context, wanted int) (rows []storage.Post, err error) {
	if w.reaches() {
		rows, further, err := w.inMemory(ctx, wanted, 0)
		w.tooFar = !further // the store gets further
		return rows, err
	}
	if w.Recent != nil {
		w.Recent.Beyond()
	}
	if w.authors.Len() <= cmp.Or(w.fewAuthors, maxFeedAuthors) {
		return w.byAuthor(ctx, wanted)
	}
	return w.byTime(ctx, wanted)
}

// spent reports whether the walk has used up the budget of this answer, or others that of the request.
func (w *feedWalk) spent() bool {
	return w.cut || w.Left.spent() || w.examined >= latestBudget || w.scans >= cmp.Or(w.scansMost, byTimeMost)
}

// reaches reports whether posts in memory may come next.
func (w *feedWalk) reaches() bool {
	if w.Recent == nil || w.tooFar {
		return false
	}
	floor := w.Recent.Floor()
	return floor < math.MaxInt64 && (w.at == (storage.Place{}) || w.at.CreatedAt > floor+1)
}

// inMemory returns posts in memory that come next, of those that are newer than a time, unless they do not reach further.
func (w *feedWalk) inMemory(ctx context.Context, wanted int, since storage.Micros) (rows []storage.Post, further bool, err error) {
	q := w.query(wanted)
	q.Since = since
	found := w.Recent.Page(q)
	if found.Ended {
		w.scans++
	}
	return w.take(ctx, found, wanted, w.Recent.Remove)
}

// query asks for the posts that come next.
func (w *feedWalk) query(wanted int) recent.Query {
	return recent.Query{Authors: w.authors, Hides: w.hides, After: w.at, Limit: wanted}
}

// take returns the posts of a page that was found, and moves behind them. gone is called for those that no longer exist.
func (w *feedWalk) take(ctx context.Context, found recent.Page, wanted int, gone func(storage.PostID)) (rows []storage.Post, further bool, err error) {
	reached := storage.Place{CreatedAt: found.Through}
	if n := len(found.Posts); n == wanted {
		reached = found.Posts[n-1].Place()
	} else if found.Through < math.MaxInt64 { // otherwise they are being loaded again
		reached.CreatedAt++ // ahead of all posts of that time
	}
	if reached.Compare(w.at) <= 0 {
		return nil, false, nil
	}
	w.at = reached
	posts := newerThan(found.Posts, w.until, storage.PostAt.Place)
	w.ended = w.isBehind(w.at) || len(posts) < len(found.Posts)
	rows, err = w.read(ctx, posts, gone)
	return rows, true, err
}

// isBehind reports whether the walk need not go further than to a place.
func (w *feedWalk) isBehind(at storage.Place) bool {
	return w.until != storage.Place{} && at.Compare(w.until) >= 0
}

func newerThan[T any](rows []T, until storage.Place, place func(T) storage.Place) []T {
	if until == (storage.Place{}) {
		return rows
	}
	i := slices.IndexFunc(rows, func(row T) bool { return place(row).Compare(until) >= 0 })
	if i < 0 {
		return rows
	}
	return rows[:i]
}

// read reads posts, and leaves out posts that no longer exist.
func (w *feedWalk) read(ctx context.Context, list []storage.PostAt, gone func(storage.PostID)) ([]storage.Post, error) {
	if len(list) == 0 {
		return nil, nil
	}
	w.examined += len(list)
	w.Left.take(entriesOfPost * len(list))
	list, err := openOf(ctx, w.Feed, list)
	if err != nil {
		return nil, err
	}
	ids := storage.Each(list, func(p storage.PostAt) storage.PostID { return p.PostID })
	rows := make([]storage.Post, 0, len(ids))
	for i, r := range storage.PostLookups.Read(ctx, w.store, ids...) {
		switch {
		case r.Err != nil:
			return nil, r.Err
		case r.Found:
			rows = append(rows, r.Value)
		default:
			gone(ids[i])
		}
	}
	return rows, nil
}

// byAuthor reads posts of those authors who have posted latest, before the place.
func (w *feedWalk) byAuthor(ctx context.Context, wanted int) ([]storage.Post, error) {
	upTo := storage.Micros(math.MaxInt64)
	if w.at != (storage.Place{}) {
		upTo = w.at.CreatedAt
	}
	authors, err := w.lastPosts(ctx, upTo)
	if err != nil || w.cut {
		return nil, err
	}
	var rows []storage.Post
	for asked := 0; asked < len(authors); {
		// If there are more authors than wanted posts, authors whose last post is older than all wanted posts have
		// none of them.
		some := authors[asked:min(len(authors), max(2*asked, wanted))]
		asked += len(some)
		if some, err = openOf(ctx, w.Feed, some); err != nil {
			return nil, err
		}
		if rows, err = w.addPosts(ctx, rows, some, wanted); err != nil {
			return nil, err
		}
		if len(rows) == wanted && (asked == len(authors) || rows[wanted-1].CreatedAt > authors[asked].CreatedAt) {
			break
		}
	}
	w.examined += len(rows)
	if w.ended = len(rows) < wanted; !w.ended {
		w.at = rows[len(rows)-1].Place()
	}
	newer := newerThan(rows, w.until, storage.Post.Place)
	w.ended = w.ended || len(newer) < len(rows)
	return newer, nil
}

// fewPosts is how many posts of an author are read at first: few authors have more of those that come next.
const fewPosts = 4

// addPosts adds the posts of authors that come next, and keeps the newest, as many as are wanted.
func (w *feedWalk) addPosts(ctx context.Context, rows []storage.Post, authors []storage.PostAt, wanted int) ([]storage.Post, error) {
	first := min(wanted, max(fewPosts, 2*wanted/max(1, len(authors))))
	queries := storage.Each(authors, func(a storage.PostAt) storage.PlaceQuery {
		return storage.PlaceQuery{Of: storage.PostID{Author: a.Author}, After: w.at, Limit: first}
	})
	for len(queries) > 0 {
		var further []storage.PlaceQuery
		for i, r := range storage.PostPageLookups.Read(ctx, w.store, queries...) {
			if r.Err != nil {
				return nil, r.Err
			}
			w.Left.take(entriesOfPost * (1 + len(r.Value)))
			rows = append(rows, r.Value...)
			if q := queries[i]; len(r.Value) == q.Limit {
				q.After, q.Limit = r.Value[q.Limit-1].Place(), min(2*q.Limit, wanted)
				further = append(further, q)
			}
		}
		slices.SortFunc(rows, func(a, b storage.Post) int { return a.Place().Compare(b.Place()) })
		rows = rows[:min(wanted, len(rows))]
		queries = slices.DeleteFunc(further, func(q storage.PlaceQuery) bool {
			return len(rows) == wanted && q.After.Compare(rows[wanted-1].Place()) >= 0
		})
	}
	return rows, nil
}

// openOf are those of some posts, or authors, that the user may see.
func openOf(ctx context.Context, f *Feed, list []storage.PostAt) ([]storage.PostAt, error) {
	if f.Opens == nil {
		return list, nil
	}
	var ask []storage.UserID
	for _, p := range list {
		if _, known := f.judged[p.Author]; !known {
			ask = append(ask, p.Author)
		}
	}
	ask = distinct(ask)
	f.Left.take(entriesOfPost * len(ask))
	opens, err := f.Opens(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, is := range opens {
		f.judged[ask[i]] = is
	}
	return storage.Filter(list, func(p storage.PostAt) bool { return f.judged[p.Author] }), nil
}

// lastPosts finds which authors have posts up to a time, and when they published the last of them, the latest first, unless that cuts the walk. Of those who
// have not posted between that time and a later one, this is known from there.
func (w *feedWalk) lastPosts(ctx context.Context, upTo storage.Micros) (list []storage.PostAt, err error) {
	var authors []storage.UserID
	if later := w.laterPosts(upTo); later == nil {
		authors = slices.DeleteFunc(slices.Clone(w.authors.IDs()), w.hides)
	} else {
		since := sort.Search(len(later.list), func(i int) bool { return later.list[i].CreatedAt <= upTo })
		if list = later.list[since:]; since == 0 {
			return list, nil
		}
		list, authors = slices.Clone(list), storage.Each(later.list[:since], func(p storage.PostAt) storage.UserID { return p.Author })
	}
	if w.cut = w.Left.entries() < len(authors); w.cut {
		return nil, nil
	}
	w.Left.take(len(authors))
	for i, r := range storage.LastPostLookups.Read(ctx, w.store, storage.LastQuery{UpTo: upTo}.Of(authors)...) {
		if r.Err != nil {
			return nil, r.Err
		}
		if r.Found {
			list = append(list, storage.PostAt{PostID: storage.PostID{Author: authors[i]}, CreatedAt: r.Value})
		}
	}
	slices.SortFunc(list, func(a, b storage.PostAt) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	if len(authors) > w.authors.Len()/8 {
		w.last = append(w.last, lastPosts{upTo, list})
	}
	return list, nil
}

// laterPosts are the last posts up to the next later time for which they are known; nil: there is none.
func (f *Feed) laterPosts(upTo storage.Micros) (next *lastPosts) {
	for i := range f.last {
		if l := &f.last[i]; l.upTo >= upTo && (next == nil || l.upTo < next.upTo) {
			next = l
		}
	}
	return next
}

// byTime looks for the authors' posts among the posts of all users.
func (w *feedWalk) byTime(ctx context.Context, wanted int) ([]storage.Post, error) {
	w.scans++
	w.Left.take(byTime)
	var list []storage.PostAt
	end := storage.Place{} // up to where all shards have been read; zero: to their ends
	for shard := range w.Shards() {
		some, err := storage.RecentPostLookups.Get(ctx, w.store, storage.ShardQuery[storage.Place]{Shard: shard, After: w.at, Limit: byTime})
		if err != nil {
			return nil, err
		}
		if n := len(some); n == byTime {
			if last := some[n-1].Place(); end == (storage.Place{}) || last.Compare(end) < 0 {
				end = last
			}
		}
		list = append(list, some...)
	}
	slices.SortFunc(list, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
	list = slices.Compact(list)
	asked := w.query(wanted)
	list = slices.DeleteFunc(list, func(p storage.PostAt) bool {
		return !asked.Has(p.Author) || end != (storage.Place{}) && p.Place().Compare(end) > 0
	})
	if len(list) > wanted {
		list = list[:wanted]
		end = list[wanted-1].Place()
	}
	if w.ended = end == (storage.Place{}); !w.ended {
		w.at = end
	}
	newer := newerThan(list, w.until, storage.PostAt.Place)
	w.ended = w.ended || len(newer) < len(list) || w.isBehind(w.at)
	return w.read(ctx, newer, func(storage.PostID) {})
}
