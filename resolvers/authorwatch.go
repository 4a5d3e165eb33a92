package resolvers

import (
	"cmp"
	"context"
	"slices"

	"kith/graph/cursor"
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

// authorSubscribes subscribes the viewer to what others do with its posts.
func authorSubscribes[K comparable, R any, A watch.Sent](ctx context.Context, r *Resolver, news authorNews[K, R, A]) (<-chan A, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	concerns := func(e events.Event) bool {
		_, is := news.keyOf(e)
		return is && e.Edge.From != viewer
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, concerns, viewer), watch.ForNews(authorWatch[K, R, A]{viewer, news}))
}

// authorWatch tells the viewer of what others do with its posts. It reads that on the viewer's own shard.
type authorWatch[K comparable, R, A any] struct {
	viewer storage.UserID
	authorNews[K, R, A]
}

// maxMissed is how many rows that a gap has hidden are sent, the newest.
const maxMissed = 1000

func (w authorWatch[K, R, A]) Read(ctx context.Context, e events.Event, since storage.Micros) (rows []R, err error) {
	l := loaders.For(ctx)
	var keys []K
	if key, is := w.keyOf(e); is {
		keys = []K{key}
	} else {
		page := loaders.Of(l, reaction.Lookups).Get(reaction.Query{User: w.viewer, Kind: w.stored, Limit: maxMissed})
		for _, r := range slices.Backward(page.Value) {
			if r.CreatedAt >= since {
				keys = append(keys, w.named(w.viewer, r))
			}
		}
		err = page.Err
	}
	for _, r := range loaders.Of(l, w.lookup).Fetch(keys) {
		// If a writer sends a comment again, it is reported again.
		if f := w.facts(r.Value); r.Found && !f.ended && (f.late || f.at >= since) {
			rows = append(rows, r.Value)
		}
		err = cmp.Or(err, r.Err)
	}
	return rows, err
}

func (w authorWatch[K, R, A]) About(row R) (K, storage.Micros) {
	f := w.facts(row)
	return f.key, f.at
}

// Send leaves out rows that the viewer itself has written, and rows of posts that no longer exist, or of users who are hidden from the viewer
// or no longer exist.
func (w authorWatch[K, R, A]) Send(ctx context.Context, rows []R) ([]R, []A, error) {
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	by := func(row R) storage.UserID { return w.facts(row).by }
	rows = storage.Filter(rows, func(row R) bool { return by(row) != w.viewer && !a.Hides(by(row)) })
	l := loaders.For(ctx)
	foundPosts := loaders.Of(l, storage.PostLookups).Fetch(storage.Each(rows, func(row R) storage.PostID { return w.facts(row).post }))
	users := l.Users.Fetch(storage.Each(rows, by))
	var shown []R
	var posts []storage.Post
	for i, post := range foundPosts {
		if err := cmp.Or(post.Err, users[i].Err); err != nil {
			return nil, nil, err
		}
		if post.Found && users[i].Found {
			shown, posts = append(shown, rows[i]), append(posts, post.Value)
		}
	}
	if len(shown) == 0 {
		return nil, nil, nil
	}
	s := payloadSelection(ctx)
	viewer := s.readViewer(ctx, w.viewer,
		prefetch.Users{IDs: prefetch.Distinct(storage.Each(shown, by)), Exist: true, On: w.onUsers(s)},
		postRows{posts, s.of("post")})
	nodes := make([]*model.Post, len(shown))
	if s.has("post") {
		nodes = postsOf(ctx, posts, s.of("post"), s.at(ctx, "post"))
	}
	return shown, w.convert(ctx, s, shown, nodes, viewer), nil
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
