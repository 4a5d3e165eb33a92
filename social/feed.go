package social

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/feed/recent"
)

// A home feed is worked out for each page: the newest posts of those whom the viewer follows at
// that moment. Memory holds where posts are in time, and nothing about who follows whom: a follow,
// a block or a deleted post counts at once. Deleted posts that are still in memory are noticed when
// they are read.
//
// A page is found in the first of these ways that reaches far enough back:
//
//   - in the viewer's inbox, and among the newest posts in memory: see [Inboxes];
//   - among the recent posts in memory;
//   - by author: which followings have posted before that time, and when last, then posts of those
//     with the latest of these times;
//   - if there are too many followings for that, among all posts of each shard by time, as far as
//     the budget allows.

// FeedStore is what home feeds ask of a store.
type FeedStore interface {
	storage.PostReader
	storage.RecentPostReader
	Shards() int
}

// Feeds are the home feeds.
type Feeds struct {
	Store   FeedStore
	Recent  *recent.Posts // nil: all is read from the store
	Inboxes *Inboxes      // nil: there are none; they need Recent

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
	Only *idset.Set     // of these users; nil: of those whom User follows
}

// Page returns the posts of a feed, newest first, behind a place.
func (f *Feeds) Page(ctx context.Context, g *Graph, of FeedOf, after storage.Place, size int) (page FeedPage, err error) {
	w, err := f.walk(ctx, g, of, after)
	if err != nil {
		return page, err
	}
	for len(page.Rows) <= size && !w.ended {
		if w.spent() {
			page.More, page.End = true, w.at
			return page, nil
		}
		rows, err := w.next(ctx, size+1-len(page.Rows))
		if err != nil {
			return page, fmt.Errorf("read the feed of user %s: %w", of.User, err)
		}
		page.Rows = append(page.Rows, rows...)
	}
	page.Complete = w.whole
	if len(page.Rows) > size {
		page.More, page.Rows = true, page.Rows[:size]
	}
	return page, nil
}

// Newer returns the posts of a feed that are newer than a place, newest first, MostNewer at
// most. There are more if more is true.
func (f *Feeds) Newer(ctx context.Context, g *Graph, of FeedOf, than storage.Place) (rows []storage.Post, more bool, err error) {
	w, err := f.walk(ctx, g, of, storage.Place{})
	if err != nil {
		return nil, false, err
	}
	w.until = than
	for len(rows) <= MostNewer && !w.ended {
		if w.spent() {
			return rows, true, nil
		}
		some, err := w.next(ctx, MostNewer+1-len(rows))
		if err != nil {
			return nil, false, fmt.Errorf("read what is new in the feed of user %s: %w", of.User, err)
		}
		rows = append(rows, some...)
	}
	if len(rows) > MostNewer {
		return rows[:MostNewer], true, nil
	}
	return rows, false, nil
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
	*Feeds
	authors *idset.Set
	hides   func(storage.UserID) bool
	whole   bool           // authors are all whom the user follows
	until   storage.Place  // only posts that are newer, unless zero
	since   storage.Micros // only posts in memory that are newer
	inbox   *inboxWalk     // nil: the viewer's inbox is not used, or not any more

	at       storage.Place // posts ahead of it have been returned
	ended    bool          // there are no more
	tooFar   bool          // the posts in memory do not reach that far
	examined int
	scans    int
}

func (f *Feeds) walk(ctx context.Context, g *Graph, of FeedOf, after storage.Place) (*feedWalk, error) {
	user, authors, whole := of.User, of.Only, true
	if authors == nil {
		var err error
		if authors, whole, err = g.Followings(ctx, user); err != nil {
			return nil, fmt.Errorf("read whom user %s follows: %w", user, err)
		}
	}
	if after == (storage.Place{}) {
		after.CreatedAt = storage.MicrosOf(time.Now().Add(recent.Ahead)) + 1
	}
	muted, err := g.LeftOut(ctx, user, storage.FeedAnswers)
	if err != nil {
		return nil, err
	}
	hides := g.audience.Hides
	if len(muted) > 0 {
		hides = func(id storage.UserID) bool { return has(muted, id) || g.audience.Hides(id) }
	}
	w := &feedWalk{Feeds: f, authors: authors, hides: hides, whole: whole, at: after, ended: authors.Len() == 0}
	if of.Only == nil {
		w.inbox = f.Inboxes.walk(user, authors, whole)
	}
	return w, nil
}

// next returns more posts, about as many as are wanted, and moves behind them.
func (w *feedWalk) next(ctx context.Context, wanted int) (rows []storage.Post, err error) {
	if w.inbox != nil {
		if rows, ok, err := w.inInbox(ctx, wanted); ok || err != nil {
			return rows, err
		}
		w.inbox, w.since = nil, 0
	}
	return w.pull(ctx, wanted)
}

// pull is next without an inbox.
func (w *feedWalk) pull(ctx context.Context, wanted int) (rows []storage.Post, err error) {
	if w.reaches() {
		return w.inMemory(ctx, wanted)
	}
	if w.Recent != nil {
		w.Recent.Beyond()
	}
	if w.authors.Len() <= cmp.Or(w.fewAuthors, maxFeedAuthors) {
		return w.byAuthor(ctx, wanted)
	}
	return w.byTime(ctx, wanted)
}

// spent reports whether the walk has used up the budget of this answer.
func (w *feedWalk) spent() bool {
	return w.examined >= latestBudget || w.scans >= cmp.Or(w.scansMost, byTimeMost)
}

// reaches reports whether posts in memory may come next.
func (w *feedWalk) reaches() bool {
	if w.Recent == nil || w.tooFar {
		return false
	}
	floor := w.Recent.Floor()
	return floor < math.MaxInt64 && (w.at == (storage.Place{}) || w.at.CreatedAt > floor+1)
}

func (w *feedWalk) inMemory(ctx context.Context, wanted int) ([]storage.Post, error) {
	found := w.Recent.Page(recent.Query{Authors: w.authors, Hides: w.hides, After: w.at, Since: w.since, Limit: wanted})
	reached := storage.Place{}
	if n := len(found.Posts); n == wanted {
		reached = found.Posts[n-1].Place()
	} else if found.Through < math.MaxInt64 { // otherwise they are being loaded again
		reached = storage.Place{CreatedAt: found.Through + 1} // ahead of all posts of that time
	}
	if w.tooFar = w.at != (storage.Place{}) && reached.Compare(w.at) <= 0; w.tooFar { // the store gets further
		return nil, nil
	}
	w.at = reached
	if found.Ended {
		w.scans++
	}
	posts := newerThan(found.Posts, w.until, storage.PostAt.Place)
	w.ended = w.isBehind(w.at) || len(posts) < len(found.Posts)
	return w.read(ctx, posts, func(gone storage.PostID) { w.Recent.Remove(gone) })
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
	ids := storage.Each(list, func(p storage.PostAt) storage.PostID { return p.PostID })
	rows := make([]storage.Post, 0, len(ids))
	for i, r := range w.Store.Posts(ctx, ids) {
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
	if err != nil {
		return nil, err
	}
	var rows []storage.Post
	for asked := 0; asked < len(authors); {
		// If there are more authors than wanted posts, authors whose last post is older than all wanted posts have
		// none of them.
		some := authors[asked:min(len(authors), max(2*asked, wanted))]
		asked += len(some)
		queries := storage.Each(some, func(a storage.PostAt) storage.PostsQuery {
			return storage.PostsQuery{Author: a.Author, After: w.at, Limit: wanted}
		})
		for _, r := range w.Store.PostPages(ctx, queries) {
			if r.Err != nil {
				return nil, r.Err
			}
			rows = append(rows, r.Value...)
		}
		slices.SortFunc(rows, func(a, b storage.Post) int { return a.Place().Compare(b.Place()) })
		if len(rows) >= wanted {
			rows = rows[:wanted]
			if asked == len(authors) || rows[wanted-1].CreatedAt > authors[asked].CreatedAt {
				break
			}
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

// lastPosts finds which authors have posts up to a time, and when they published the last of them, the latest first.
func (w *feedWalk) lastPosts(ctx context.Context, upTo storage.Micros) (list []storage.PostAt, err error) {
	authors := slices.DeleteFunc(slices.Clone(w.authors.IDs()), w.hides)
	for i, r := range w.Store.LastPosts(ctx, authors, upTo) {
		if r.Err != nil {
			return nil, r.Err
		}
		if r.Found {
			list = append(list, storage.PostAt{PostID: storage.PostID{Author: authors[i]}, CreatedAt: r.Value})
		}
	}
	slices.SortFunc(list, func(a, b storage.PostAt) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list, nil
}

// byTime looks for the authors' posts among the posts of all users.
func (w *feedWalk) byTime(ctx context.Context, wanted int) ([]storage.Post, error) {
	w.scans++
	var list []storage.PostAt
	end := storage.Place{} // up to where all shards have been read; zero: to their ends
	for shard := range w.Store.Shards() {
		some, err := w.Store.RecentPosts(ctx, storage.RecentQuery{Shard: shard, After: w.at, Limit: byTime})
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
	list = slices.DeleteFunc(list, func(p storage.PostAt) bool {
		return !w.authors.Contains(p.Author) || w.hides(p.Author) || end != (storage.Place{}) && p.Place().Compare(end) > 0
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
