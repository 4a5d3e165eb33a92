package resolvers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kith/graph/cursor"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/reaction"
)

func (r subscriptions) FavoriteAdded(ctx context.Context) (<-chan *model.FavoriteAdded, error) {
	return authorSubscribes(ctx, r.Resolver, newFavorites)
}

func (r subscriptions) CommentAdded(ctx context.Context) (<-chan *model.CommentAdded, error) {
	return authorSubscribes(ctx, r.Resolver, newComments)
}

// authorNews is what others do with posts: rows R with keys K, sent as A.
type authorNews[K comparable, R, A any] struct {
	lookup *storage.LookupKind[K, R]
	// keyOf is the key of the row that an event has added, with the post's author; false if the event has added no row.
	keyOf func(e events.Event) (K, bool)
	// stored is what the rows are in the list of what concerns an author, and named is the key of one of them.
	stored reaction.Kind
	named  func(author storage.UserID, r reaction.Reaction) K
	// facts says what a row is.
	facts func(row R) facts[K]
	// onUsers is the selection on the users.
	onUsers func(s selection) []*selections.Object
	// convert makes the answers of rows whose posts and users have been fetched.
	convert func(ctx context.Context, s selection, rows []R, posts []*model.Post, viewer *model.Viewer) []A
}

// facts is what every row of the news has.
type facts[K comparable] struct {
	key   K
	post  storage.PostID
	by    storage.UserID
	at    storage.Micros
	late  bool // it may arrive long after its time, by replication
	ended bool // it says that there is none any more
}

// authorSubscribes subscribes the viewer to what others do with its posts. After an event it reads what it sends on the viewer's own shard.
func authorSubscribes[K comparable, R any, A watch.Sent](ctx context.Context, r *Resolver, news authorNews[K, R, A]) (<-chan A, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	w := &authorWatch[K, R, A]{viewer: viewer, news: news}
	concerns := func(e events.Event) bool {
		_, is := news.keyOf(e)
		return is && e.Edge.From != viewer
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, concerns, viewer), watch.ForNews(w))
}

// authorWatch is the state of one favoriteAdded or commentAdded.
type authorWatch[K comparable, R, A any] struct {
	viewer storage.UserID
	news   authorNews[K, R, A]
	began  storage.Micros // rows that are not newer are known
	latest storage.Micros // time of the newest row that was sent
	missed []K            // rows that a gap has hidden and that have not been looked at yet, oldest first
}

// maxMissed is how many rows that a gap has hidden are sent, the newest.
const maxMissed = 1000

// Begin reads the rows of the last minute, as that of [edgeNews] does.
func (w *authorWatch[K, R, A]) Begin(ctx context.Context) (known []R, err error) {
	w.began = storage.MicrosOf(time.Now()) - watch.InFlight
	keys, err := w.miss(ctx)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return w.read(ctx, keys)
}

// read reads rows, without those that no longer exist.
func (w *authorWatch[K, R, A]) read(ctx context.Context, keys []K) (rows []R, err error) {
	for _, r := range loaders.Of(loaders.For(ctx), w.news.lookup).Fetch(keys) {
		if r.Found && !w.news.facts(r.Value).ended {
			rows = append(rows, r.Value)
		}
		err = cmp.Or(err, r.Err)
	}
	return rows, err
}

func (w *authorWatch[K, R, A]) Read(ctx context.Context, e events.Event) (rows []R, more bool, err error) {
	key, is := w.news.keyOf(e)
	keys := []K{key}
	if !is {
		if len(w.missed) == 0 {
			if w.missed, err = w.miss(ctx); err != nil {
				return nil, false, err
			}
		}
		keys = w.missed[:min(len(w.missed), limits.MaxPage)]
	}
	if rows, err = w.shown(ctx, keys); err != nil {
		return nil, false, err
	}
	if !is {
		w.missed = w.missed[len(keys):]
	}
	for _, row := range rows {
		w.latest = watch.Reached(w.latest, w.news.facts(row).at)
	}
	return rows, len(w.missed) > 0, nil
}

func (w *authorWatch[K, R, A]) About(row R) (K, storage.Micros) {
	f := w.news.facts(row)
	return f.key, f.at
}

// miss lists what may have been done with the viewer's posts since the newest row that was sent, oldest first.
func (w *authorWatch[K, R, A]) miss(ctx context.Context) (keys []K, err error) {
	query := reaction.Query{User: w.viewer, Kind: w.news.stored, Limit: maxMissed}
	page := loaders.Of(loaders.For(ctx), reaction.Lookups).Get(query)
	for _, r := range slices.Backward(page.Value) {
		if r.CreatedAt >= max(w.began, w.latest-watch.Unheard) {
			keys = append(keys, w.news.named(w.viewer, r))
		}
	}
	return keys, page.Err
}

// shown reads rows. It leaves out rows that the viewer itself has written, and
// rows of posts that no longer exist, or of users who are hidden from the viewer or no longer exist.
func (w *authorWatch[K, R, A]) shown(ctx context.Context, keys []K) ([]R, error) {
	rows, err := w.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row R) bool {
		f := w.news.facts(row)
		// If a writer sends a comment again, it is reported again.
		isOld := !f.late && f.at < w.began
		return isOld || f.by == w.viewer || a.Hides(f.by)
	})
	posts, users := make([]storage.PostID, len(rows)), make([]storage.UserID, len(rows))
	for i, row := range rows {
		posts[i], users[i] = w.news.facts(row).post, w.news.facts(row).by
	}
	l := loaders.For(ctx)
	foundPosts, foundUsers := loaders.Of(l, storage.PostLookups).Fetch(posts), l.Users.Fetch(users)
	var shown []R
	for i, row := range rows {
		if err := cmp.Or(foundPosts[i].Err, foundUsers[i].Err); err != nil {
			return nil, err
		}
		if foundPosts[i].Found && foundUsers[i].Found {
			shown = append(shown, row)
		}
	}
	return shown, nil
}

func (w *authorWatch[K, R, A]) Send(ctx context.Context, rows []R) []A {
	s, l := payloadSelection(ctx), loaders.For(ctx)
	posts, users := make([]storage.Post, len(rows)), make([]storage.UserID, len(rows))
	for i, row := range rows {
		f := w.news.facts(row)
		posts[i], users[i] = loaders.Of(l, storage.PostLookups).Load(f.post).Value, f.by
	}
	prefetch.Fetch(ctx,
		prefetch.Users{IDs: prefetch.Distinct(users), Exist: true, On: w.news.onUsers(s)},
		postRows{posts, s.of("post")},
		s.viewerObjects(w.viewer))
	nodes := make([]*model.Post, len(rows))
	if s.has("post") {
		nodes = postsOf(ctx, posts, s.of("post"), s.at(ctx, "post"))
	}
	return w.news.convert(ctx, s, rows, nodes, s.showViewer(ctx, w.viewer))
}

// newFavorites are what favoriteAdded sends.
var newFavorites = authorNews[storage.Pair, storage.Edge, *model.FavoriteAdded]{
	lookup: storage.EdgeLookups[storage.FavoriteInbox],
	stored: reaction.Favorites,
	keyOf: func(e events.Event) (storage.Pair, bool) {
		return e.Edge.Pair(), e.Side == storage.FavoriteInbox && e.Edge.Type == storage.Favorited
	},
	named: func(author storage.UserID, r reaction.Reaction) storage.Pair {
		return storage.Pair{From: r.By, To: author, Item: r.Post}
	},
	facts: func(e storage.Edge) facts[storage.Pair] {
		return facts[storage.Pair]{key: e.Pair(), post: e.Pair().PostID(), by: e.From, at: e.UpdateTime, late: true, ended: e.Type != storage.Favorited}
	},
	onUsers: func(s selection) []*selections.Object { return s.below("edge").of("node") },
	convert: func(ctx context.Context, s selection, rows []storage.Edge, posts []*model.Post, viewer *model.Viewer) []*model.FavoriteAdded {
		list := make([]*model.FavoriteAdded, len(rows))
		for i, row := range rows {
			user := s.user(ctx, row.From, true, "edge", "node")
			at := prefetch.Spell(prefetch.Unsealed, cursor.FavoritedBy, social.FavoritedByPlace(row))
			list[i] = &model.FavoriteAdded{Edge: &model.UserEdge{Cursor: at, Node: user, Since: row.UpdateTime.Time()}, Post: posts[i], Viewer: viewer}
		}
		return list
	},
}

// newComments are what commentAdded sends.
var newComments = authorNews[storage.CommentID, storage.Comment, *model.CommentAdded]{
	lookup: storage.CommentLookups,
	stored: reaction.Comments,
	keyOf: func(e events.Event) (storage.CommentID, bool) {
		return storage.CommentID{Author: e.Post.Author, Number: e.Post.Comment}, e.Post.News == storage.PostCommented
	},
	named: func(author storage.UserID, r reaction.Reaction) storage.CommentID {
		return storage.CommentID{Author: author, Number: r.Number}
	},
	facts: func(c storage.Comment) facts[storage.CommentID] {
		return facts[storage.CommentID]{key: c.CommentID, post: storage.PostID{Author: c.Author, Number: c.Post}, by: c.By, at: c.CreatedAt}
	},
	onUsers: func(s selection) []*selections.Object { return s.below("edge").below("node").of("author") },
	convert: func(ctx context.Context, s selection, rows []storage.Comment, posts []*model.Post, viewer *model.Viewer) []*model.CommentAdded {
		nodes, on := make([]*model.Comment, len(rows)), s.below("edge")
		if on.has("node") {
			nodes = commentsOf(ctx, rows, on.of("node"), s.at(ctx, "edge", "node"))
		}
		list := make([]*model.CommentAdded, len(rows))
		for i, row := range rows {
			edge := commentEdge(row, nodes[i])
			list[i] = &model.CommentAdded{Edge: &edge, Post: posts[i], Viewer: viewer}
		}
		return list
	},
}
