package resolvers

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/events"
)

// PostAdded answers `postAdded`. It wakes up only for posts of users who were in the feed when an
// event last said that they had changed. Then it asks the store.
func (r subscriptions) PostAdded(ctx context.Context, only *model.FeedOnly) (<-chan *model.PostAdded, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	w := &feedWatch{resolver: r.Resolver, viewer: viewer, users: feedAuthorsOf(only)}
	if w.users.ofList {
		if w.listID, err = parseListID("only", w.users.list); err != nil {
			return nil, err
		}
	}
	of := viewer
	if w.users.ofList {
		of = w.listID.Owner
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribePosts(ctx, w.concerns, of), watch.ForNews(w))
}

// feedWatch is the state of one postAdded.
type feedWatch struct {
	resolver *Resolver
	viewer   storage.UserID
	users    feedAuthors
	listID   storage.ListID            // users.list
	follows  atomic.Pointer[idset.Set] // the members of the list, whether the viewer sees it now or not, or all followings; nil: not known yet
}

func (w *feedWatch) concerns(e events.Event) bool {
	switch {
	case e.Post.News == storage.PostPublished:
		follows := w.follows.Load()
		return follows == nil || follows.Contains(e.Post.Author)
	case e.Side == storage.Inverse:
		return !w.users.ofList && e.Edge.From == w.viewer
	case e.Side == storage.RelationInbox:
		return w.users.ofList && e.Edge.From == w.listID.Owner && e.Edge.Item == w.listID.Kind()
	}
	return false
}

// learn reads whose posts may be in the feed, and returns those of them whose posts are in it now.
func (w *feedWatch) learn(ctx context.Context) (authors *idset.Set, err error) {
	g, err := graphOf(ctx)
	if err != nil {
		return nil, err
	}
	if w.users.ofList {
		authors, err = only(g.OnLists(ctx, []storage.ListID{w.listID}))
	} else {
		authors, _, err = g.Followings(ctx, w.viewer)
	}
	if err != nil {
		return nil, err
	}
	follows := authors
	in, err := onlyOf(ctx, g, w.viewer, w.users)
	switch {
	case err == nil && in != nil:
		authors, err = in(ctx)
	case w.follows.Load() != nil && isNoList(err): // it is gone, or private by now, and may come back
		authors, err = idset.Of(nil), nil
	}
	if err == nil {
		w.follows.Store(follows)
	}
	return authors, err
}

func (w *feedWatch) Read(ctx context.Context, e events.Event, since storage.Micros) (rows []storage.Post, err error) {
	if e.Kind == events.PostChanged {
		rows, err = w.post(ctx, e.Post.PostID)
	} else if only, failed := w.learn(ctx); failed != nil {
		return nil, failed
	} else if e.Kind == events.Gap { // a follow, too, may have come without its event
		rows, err = w.missed(ctx, only, since)
	} else if only.Contains(e.Edge.To) { // posts that have come since did not wake the watch; one clock has written it, and others the posts
		followed := min(e.Edge.UpdateTime, storage.MicrosOf(time.Now()))
		rows, err = w.missed(ctx, idset.Of([]storage.UserID{e.Edge.To}), max(since, followed-watch.InFlight))
	}
	// Publishing a post again is reported as publishing it is.
	return slices.DeleteFunc(rows, func(p storage.Post) bool { return p.CreatedAt < since }), err
}

func (*feedWatch) About(p storage.Post) (storage.PostID, storage.Micros) {
	return p.PostID, p.CreatedAt
}

// post reads a post, if it is in the feed.
func (w *feedWatch) post(ctx context.Context, id storage.PostID) ([]storage.Post, error) {
	a, err := prefetch.AudienceOf(ctx)
	if err != nil || a.Hides(id.Author) {
		return nil, err
	}
	l := loaders.For(ctx)
	if w.users.ofList || w.users.special {
		if only, err := w.learn(ctx); err != nil || !only.Contains(id.Author) {
			return nil, err
		}
		if w.users.ofList {
			if open, err := opensPosts(ctx, []storage.UserID{id.Author}); err != nil || !open[0] {
				return nil, err
			}
		}
	} else if follow := loaders.Of(l, storage.EdgeLookups[storage.Forward]).Load(storage.Pair{From: w.viewer, To: id.Author}); follow.Value.Type != storage.Following {
		return nil, follow.Err
	}
	muted, err := prefetch.AccessOf(ctx).Graph(l.Reader(), a).Related(ctx, w.viewer, social.OutOfFeeds...)
	if err != nil || slices.Contains(muted, id.Author) {
		return nil, err
	}
	r := loaders.Of(l, storage.PostLookups).Load(id)
	if !r.Found {
		return nil, r.Err
	}
	return []storage.Post{r.Value}, nil
}

// missed reads the posts of some authors that have come since a time, oldest first, as many as are counted for `newerThan`.
func (w *feedWatch) missed(ctx context.Context, only *idset.Set, since storage.Micros) ([]storage.Post, error) {
	g, err := graphOf(ctx)
	if err != nil {
		return nil, err
	}
	of := social.FeedOf{User: w.viewer}
	if only != w.follows.Load() || w.users.ofList {
		of.Only = func(context.Context) (*idset.Set, error) { return only, nil }
	}
	if w.users.ofList {
		of.Opens = opensPosts
	}
	feed, err := w.resolver.Feeds.Of(ctx, g, of)
	if err != nil {
		return nil, err
	}
	rows, _, err := feed.Newer(ctx, storage.Place{CreatedAt: since})
	slices.Reverse(rows)
	return rows, err
}

func (w *feedWatch) Send(ctx context.Context, rows []storage.Post) ([]storage.Post, []*model.PostAdded, error) {
	s := payloadSelection(ctx)
	edge := s.below("edge")
	viewer := s.readViewer(ctx, w.viewer, postRows{rows, edge.of("node")})
	list := storage.Each(rows, func(p storage.Post) *model.PostAdded {
		return &model.PostAdded{Edge: &model.PostEdge{Cursor: prefetch.Spell(prefetch.Unsealed, cursor.Feed, p.Place())}, Viewer: viewer}
	})
	if edge.has("node") {
		for i, node := range postsOf(ctx, rows, edge.of("node"), s.at(ctx, "edge", "node")) {
			list[i].Edge.Node = node
		}
	}
	return rows, list, nil
}
