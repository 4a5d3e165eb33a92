package social

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
)

// Inboxes let pages of home feeds be found where posts have been copied, for users who are active. A page is the same as without them:
//
//   - Posts come from memory if they are newer than those that have certainly been copied.
//   - Older posts come from the inbox, if it is for the followings as they are now. Posts of hot authors, which are never copied, come
//     by pull.
//   - Where the inbox ends, or if there is no right inbox, all posts come by pull. Then an inbox is built in the background.

const (
	buildTime = 10 * time.Second
	// leastPosts is how many posts an inbox gets from the store if there are fewer in memory.
	leastPosts = 100
)

// inboxOf is what a walk uses of an inbox.
type inboxOf struct {
	state *inbox.State
	hot   *idset.Set
}

func (f *Feed) inbox() *inboxOf {
	if f.Inboxes != nil && mayHaveInbox(f.authors, f.whole) {
		if state := f.Inboxes.Current(); state != nil {
			return &inboxOf{state, idset.Of(state.Hot(f.authors.IDs()))}
		}
	}
	return nil
}

// mayHaveInbox reports whether a user with these followings may have an inbox.
func mayHaveInbox(followings *idset.Set, whole bool) bool {
	return whole && followings.Len() > 0 && followings.Len() <= maxFeedAuthors
}

// inInbox is next by the inbox. If that does not get further, it returns false.
func (w *feedWalk) inInbox(ctx context.Context, wanted int) (rows []storage.Post, further bool, err error) {
	if done := w.inbox.state.Done; w.at.CreatedAt > done+1 {
		return w.inMemory(ctx, wanted, done)
	}
	found, has := w.Inboxes.Page(ctx, w.inbox.state, w.User, w.query(wanted))
	if !has {
		w.Inboxes.Ask(w.User)
		return nil, false, nil
	}
	from := w.at
	rows, further, err = w.take(ctx, found, wanted, func(storage.PostID) {})
	w.ended = w.ended || found.Through == 0 && len(found.Posts) < wanted // there is nothing behind the inbox
	if err != nil || !further || w.inbox.hot.Len() == 0 {
		return rows, further, err
	}
	rows, err = w.addHot(ctx, rows, from, wanted)
	return rows, true, err
}

// addHot adds the posts of hot authors from a place to where the walk is. If there are too many, the walk goes back.
func (w *feedWalk) addHot(ctx context.Context, rows []storage.Post, from storage.Place, wanted int) ([]storage.Post, error) {
	feed := *w.Feed
	feed.authors, feed.last = w.inbox.hot, nil
	until := w.until
	if !w.isBehind(w.at) {
		until = storage.Place{CreatedAt: w.at.CreatedAt, Number: w.at.Number - 1} // a post at that place counts as well
	}
	hot := &feedWalk{Feed: &feed, at: from, until: until}
	for hot.at == from && !hot.ended && !hot.cut {
		some, err := hot.pull(ctx, wanted)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	w.examined, w.scans, w.cut = w.examined+hot.examined, w.scans+hot.scans, hot.cut
	if hot.at.Compare(w.at) < 0 && !hot.ended {
		w.at, w.ended = hot.at, false
	}
	slices.SortFunc(rows, func(a, b storage.Post) int { return a.Place().Compare(b.Place()) })
	return slices.DeleteFunc(rows, func(p storage.Post) bool { return p.Place().Compare(w.at) > 0 }), nil
}

// BuildInboxes builds the inboxes that are wanted, one after another, until the context is done.
func (f *Feeds) BuildInboxes(ctx context.Context, graph func(context.Context) *Graph) {
	for {
		select {
		case user := <-f.Inboxes.Asked:
			if err := f.buildInbox(ctx, graph(ctx), user); err != nil && !errors.Is(err, inbox.ErrNotNow) {
				f.Inboxes.Logger.DebugContext(ctx, "an inbox was not built: the feed is pulled", "user", user, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (f *Feeds) buildInbox(ctx context.Context, g *Graph, user storage.UserID) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	followings, whole, err := g.Followings(ctx, user)
	if err != nil || !mayHaveInbox(followings, whole) {
		return err
	}
	return f.Inboxes.Build(ctx, user, followings.IDs(), func(ctx context.Context, authors []storage.UserID) (recent.Page, error) {
		return f.candidates(ctx, g, authors)
	})
}

// candidates finds the newest posts of authors, whoever may see them.
func (f *Feeds) candidates(ctx context.Context, g *Graph, authors []storage.UserID) (recent.Page, error) {
	w := &feedWalk{Feed: &Feed{Feeds: f, store: g.store, authors: idset.Of(authors), hides: func(storage.UserID) bool { return false }}}
	found := f.Recent.Page(w.query(inbox.Capacity))
	if n := len(found.Posts); n == inbox.Capacity {
		found.Through = found.Posts[n-1].CreatedAt
	}
	if found.Through < math.MaxInt64 { // otherwise they are being loaded
		w.at.CreatedAt = found.Through + 1
	}
	if len(found.Posts) < leastPosts {
		rows, err := w.byAuthor(ctx, leastPosts)
		if err != nil {
			return found, err
		}
		found.Posts = append(found.Posts, storage.Each(rows, storage.Post.At)...)
		if found.Through = w.at.CreatedAt; w.ended {
			found.Through = 0
		}
	}
	return found, nil
}
