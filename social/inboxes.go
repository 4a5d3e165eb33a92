package social

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
)

// Inboxes let pages of home feeds be read from where posts have been copied, for users who are active. A page
// is the same as without them:
//
//   - Posts come from memory if they are newer than those that have certainly been copied.
//   - Older posts come from the inbox, if it is for the followings as they are now. Posts of hot
//     authors, which are never copied, come by pull.
//   - Where the inbox ends, or if there is no right inbox, all posts come by pull. Then an inbox is built
//     in the background.
type Inboxes struct {
	*inbox.Boxes
	Graph  func(context.Context) *Graph // of background work
	Logger *slog.Logger

	queue chan build
}

// build is a user whose inbox is to be built.
type build struct {
	user       storage.UserID
	followings *idset.Set // nil: not known
}

const (
	// mostBuilds is how many inboxes wait to be built. If there are more, a later page asks again.
	mostBuilds = 1000
	buildTime  = 10 * time.Second
	// leastPosts is up to how many posts an inbox gets from the store in addition to those in
	// memory.
	leastPosts = 100
	buildPage  = 50
	// spare is how many more posts are read from an inbox than are wanted, to replace those that are left out.
	spare = 10
)

// NewInboxes makes inboxes, which [Inboxes.Run] builds.
func NewInboxes(boxes *inbox.Boxes, graph func(context.Context) *Graph, logger *slog.Logger) *Inboxes {
	return &Inboxes{Boxes: boxes, Graph: graph, Logger: logger, queue: make(chan build, mostBuilds)}
}

// Active notes that a user has signed in: the user may soon read its feed. It does not wait.
func (b *Inboxes) Active(user storage.UserID) { b.want(build{user: user}) }

func (b *Inboxes) want(one build) {
	select {
	case b.queue <- one:
	default:
	}
}

// Run builds inboxes, one after another, until the context is done.
func (b *Inboxes) Run(ctx context.Context, feeds *Feeds) {
	for {
		select {
		case one := <-b.queue:
			if err := b.build(ctx, feeds, one); err != nil && !errors.Is(err, inbox.ErrNotNow) && ctx.Err() == nil {
				b.Logger.DebugContext(ctx, "an inbox was not built: the feed is pulled", "user", one.user, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (b *Inboxes) build(ctx context.Context, feeds *Feeds, one build) (err error) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	state := b.Current()
	if state == nil {
		return inbox.ErrNotNow
	}
	if one.followings == nil {
		var whole bool
		if one.followings, whole, err = b.Graph(ctx).Followings(ctx, one.user); err != nil || !mayHaveInbox(one.followings, whole) {
			return err
		}
		if _, _, has := b.Read(ctx, state, one.user, one.followings.IDs(), 0, 1); has {
			return nil
		}
	}
	return b.Build(ctx, state, one.user, one.followings.IDs(), feeds.candidates)
}

// mayHaveInbox reports whether a user with these followings may have an inbox.
func mayHaveInbox(followings *idset.Set, whole bool) bool {
	return whole && followings.Len() > 0 && followings.Len() <= maxFeedAuthors
}

// candidates finds the newest posts of authors, whoever may see them, and the time down to which no posts
// are missing; 0: there are no more.
func (f *Feeds) candidates(ctx context.Context, authors []storage.UserID) (list []storage.PostAt, floor storage.Micros, err error) {
	w := &feedWalk{Feed: &Feed{Feeds: f, authors: idset.Of(authors), hides: func(storage.UserID) bool { return false }}, ended: len(authors) == 0}
	if w.ended {
		return nil, 0, nil
	}
	floor = math.MaxInt64
	if w.reaches() {
		found := f.Recent.Page(recent.Query{Authors: w.authors, Limit: inbox.Capacity})
		if list = found.Posts; len(list) == inbox.Capacity {
			return list, list[len(list)-1].CreatedAt, nil
		}
		floor = found.Through
		w.at = storage.Place{CreatedAt: floor + 1}
	}
	for len(list) < leastPosts {
		rows, err := w.byAuthor(ctx, buildPage)
		if err != nil {
			return nil, 0, err
		}
		for _, p := range rows {
			list = append(list, p.At())
		}
		if w.ended {
			return list, 0, nil
		}
		floor = w.at.CreatedAt
	}
	return list, floor, nil
}

// inboxWalk is the part of a walk that goes through an inbox.
type inboxWalk struct {
	*Inboxes
	state      *inbox.State
	user       storage.UserID
	followings []storage.UserID
	hot        *idset.Set
}

func (b *Inboxes) walk(user storage.UserID, authors *idset.Set, whole bool) *inboxWalk {
	if b == nil || !mayHaveInbox(authors, whole) {
		return nil
	}
	state := b.Current()
	if state == nil {
		return nil
	}
	ids := authors.IDs()
	return &inboxWalk{Inboxes: b, state: state, user: user, followings: ids, hot: idset.Of(state.Hot(ids))}
}

// inInbox is next by the inbox. If the inbox has no answer, it returns false and changes nothing.
func (w *feedWalk) inInbox(ctx context.Context, wanted int) (rows []storage.Post, ok bool, err error) {
	if done := w.inbox.state.Done; w.at == (storage.Place{}) || w.at.CreatedAt > done+1 {
		w.since = done
		if w.Recent.Floor() > done || !w.reaches() {
			return nil, false, nil
		}
		rows, err = w.inMemory(ctx, wanted)
		return rows, !w.tooFar, err
	}
	part, ok := w.readInbox(ctx, wanted)
	if !ok {
		return nil, false, nil
	}
	hot, ok, err := w.pullHot(ctx, part.reached, wanted)
	if err != nil || !ok {
		return nil, false, err
	}
	var gone []storage.PostID
	if rows, err = w.read(ctx, part.posts, func(id storage.PostID) { gone = append(gone, id) }); err != nil {
		return nil, true, err
	}
	if len(gone) > 0 {
		w.inbox.Forget(ctx, w.inbox.user, gone)
	}
	rows = append(rows, hot...)
	slices.SortFunc(rows, func(a, b storage.Post) int { return a.Place().Compare(b.Place()) })
	if len(rows) > wanted {
		rows = rows[:wanted]
		part = inboxPart{reached: rows[wanted-1].Place()}
	}
	w.at = part.reached
	newer := newerThan(rows, w.until, storage.Post.Place)
	w.ended = part.last || w.isBehind(w.at) || len(newer) < len(rows)
	if part.end {
		w.inbox, w.since = nil, 0
	}
	return newer, true, nil
}

// inboxPart is the posts that come next in an inbox, without those that must not be shown.
type inboxPart struct {
	posts   []storage.PostAt
	reached storage.Place // down to there no posts are missing
	end     bool          // the inbox ends there
	last    bool          // and there are no posts behind it
}

// readInbox reads a part. If the inbox is not right, a new one is built.
func (w *feedWalk) readInbox(ctx context.Context, wanted int) (part inboxPart, ok bool) {
	b := w.inbox
	all, floor, ok := b.Read(ctx, b.state, b.user, b.followings, w.at.CreatedAt, wanted+spare)
	if !ok {
		b.want(build{b.user, w.authors})
		return part, false
	}
	part.reached = storage.Place{CreatedAt: floor + 1} // ahead of all posts of that time
	if part.end = len(all) < wanted+spare; part.end {
		part.last = floor == 0
	} else {
		part.reached = all[len(all)-1].Place()
	}
	if part.reached.Compare(w.at) <= 0 {
		return part, false // it does not reach further
	}
	for _, p := range all {
		if p.Place().Compare(w.at) <= 0 || !w.authors.Contains(p.Author) || b.hot.Contains(p.Author) || w.hides(p.Author) {
			continue
		}
		if part.posts = append(part.posts, p); len(part.posts) == wanted {
			part.reached, part.end, part.last = p.Place(), false, false
			break
		}
	}
	return part, true
}

// pullHot pulls the posts of hot authors down to a place, at most as many as are wanted. It returns false if that
// takes too much.
func (w *feedWalk) pullHot(ctx context.Context, reached storage.Place, wanted int) (rows []storage.Post, ok bool, err error) {
	if w.inbox.hot.Len() == 0 {
		return nil, true, nil
	}
	reached.Number-- // a post at that place counts as well
	hot := &feedWalk{Feed: &Feed{Feeds: w.Feeds, FeedOf: w.FeedOf, authors: w.inbox.hot, hides: w.hides}, at: w.at, until: reached}
	for len(rows) < wanted && !hot.ended {
		if hot.spent() {
			return nil, false, nil
		}
		some, err := hot.pull(ctx, wanted-len(rows))
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, some...)
	}
	w.examined += hot.examined
	return rows, true, nil
}
