package resolvers

import (
	"cmp"
	"context"

	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

var (
	userPosts = prefetch.PlaceList[storage.UserID, storage.PlaceQuery, storage.Post]{
		Kind: cursor.Posts, Of: userName, Pages: storage.PostPageLookups, Place: storage.Post.Place, OfUser: true,
		Query: prefetch.Behind,
		Shows: func(_ *prefetch.Access, a *social.Audience, p storage.Post) bool { return !a.Hides(p.Author) },
		Below: func(_ context.Context, _ *social.Audience, rows []storage.Post, on []*selections.Object) prefetch.Objects {
			return postRows{rows, on}
		},
	}
	postComments = prefetch.PlaceList[storage.Post, storage.PlaceQuery, storage.Comment]{
		Kind: cursor.Comments, Of: postName, Pages: storage.CommentPageLookups, Place: storage.Comment.Place,
		Query: prefetch.Behind,
		Shows: func(_ *prefetch.Access, a *social.Audience, c storage.Comment) bool { return !a.Hides(c.By) },
		Below: func(_ context.Context, _ *social.Audience, rows []storage.Comment, on []*selections.Object) prefetch.Objects {
			return commentRows{rows, on}
		},
	}
)

var (
	// postAuthor is who has written a post.
	postAuthor = writer(func(p storage.Post) storage.UserID { return p.Author },
		func(p *model.Post) (storage.UserID, **model.User) { return p.Row.Author, &p.Author })
	// commentAuthor is who has written a comment.
	commentAuthor = writer(writerOf, func(c *model.Comment) (storage.UserID, **model.User) { return c.Row.By, &c.Author })
)

func writerOf(row storage.Comment) storage.UserID { return row.By }

// postsOf makes posts that the viewer may see and whose users have been fetched.
func postsOf(ctx context.Context, rows []storage.Post, on []*selections.Object, at prefetch.Paths) []*model.Post {
	posts, made := make([]*model.Post, len(rows)), make([]model.Post, len(rows))
	e, needs := prefetch.AccessOf(ctx), prefetch.NeedsOf(ctx, on)
	for i, row := range rows {
		if made[i].Row, made[i].Files, posts[i] = row, model.FilesOf(row), &made[i]; needs&fields.Favorite != 0 && e.Viewer != 0 {
			r := loaders.Of(e.Loaders, storage.EdgeLookups[storage.Favorites]).Load(favoriteOf(e.Viewer, row))
			made[i].Favorited = storage.Result[bool]{Value: r.Value.Type == storage.Favorited, Found: true, Err: r.Err}
		}
	}
	prefetch.ShowParts(ctx, posts, on, at)
	return posts
}

// postRows are posts whose rows are known.
type postRows prefetch.Rows[storage.Post]

func (w postRows) AddTo(ctx context.Context, level *prefetch.Level) {
	if prefetch.NeedsOf(ctx, w.On)&fields.Favorite != 0 && level.Viewer != 0 {
		pairs := storage.Each(w.Rows, func(p storage.Post) storage.Pair { return favoriteOf(level.Viewer, p) })
		level.Ask(loaders.Of(level.Loaders, storage.EdgeLookups[storage.Favorites]).Ask(pairs))
	}
	prefetch.Rows[storage.Post](w).AddTo(ctx, level)
}

// postName names a post as what has lists.
func postName(p storage.Post) storage.PostID { return p.PostID }

func askPostNodes(ctx context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object) {
	postIDs{storage.Each(ids, nodeID.post), on}.AddTo(ctx, level)
}

// postIDs are posts by their ids.
type postIDs struct {
	ids []storage.PostID
	on  []*selections.Object
}

func (w postIDs) AddTo(_ context.Context, level *prefetch.Level) {
	if len(w.ids) == 0 {
		return
	}
	level.AddOpens(storage.FavoriteInbox, storage.Each(w.ids, func(id storage.PostID) storage.UserID { return id.Author }))
	level.Ask(loaders.Of(level.Loaders, storage.PostLookups).Ask(w.ids))
	level.Seen = append(level.Seen, func(ctx context.Context, a *social.Audience) {
		level.Next = append(level.Next, postRows{visiblePosts(ctx, a, w.ids), w.on})
	})
}

func showPostNode(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node {
	a, err := prefetch.AudienceOf(ctx)
	if err == nil {
		err = postErr(ctx, a, id.post())
	}
	if err != nil {
		prefetch.FailAt(ctx, at(0), err)
		return nil
	}
	return orNil(postsOf(ctx, visiblePosts(ctx, a, []storage.PostID{id.post()}), on, at))
}

func askCommentNodes(_ context.Context, level *prefetch.Level, nodes []nodeID, on []*selections.Object) {
	ids := storage.Each(nodes, nodeID.comment)
	level.AddOpens(storage.FavoriteInbox, storage.Each(nodes, nodeID.user))
	level.Ask(loaders.Of(level.Loaders, storage.CommentLookups).Ask(ids))
	level.Seen = append(level.Seen, func(ctx context.Context, a *social.Audience) {
		level.Next = append(level.Next, commentRows{visibleComments(ctx, a, ids), on})
	})
}

func showCommentNode(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node {
	a, err := prefetch.AudienceOf(ctx)
	if err == nil {
		_, err = prefetch.AccessOf(ctx).Shows(a, id.comment().Author)
		err = cmp.Or(loaders.Of(loaders.For(ctx), storage.CommentLookups).Load(id.comment()).Err, err)
	}
	if err != nil {
		prefetch.FailAt(ctx, at(0), err)
		return nil
	}
	return orNil(commentsOf(ctx, visibleComments(ctx, a, []storage.CommentID{id.comment()}), on, at))
}

func (userFields) Posts(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.PostConnection, error) {
	f, p, err := prefetch.Answer[storage.Post](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	return postConnection(ctx, f, p), nil
}

// postConnection makes a page of posts, which have been fetched.
func postConnection(ctx context.Context, f *selections.Field, p *prefetch.Page[storage.Post]) *model.PostConnection {
	prefetch.Explain(ctx, p)
	nodes := make([]*model.Post, len(p.Rows))
	if items := f.Below[0].Items; items != nil {
		nodes = postsOf(ctx, p.Rows, items, prefetch.ItemPaths(ctx, f))
	}
	return &model.PostConnection{Page: prefetch.PageOf(p.Info, nodes, func(i int) model.PostEdge { return model.PostEdge{Cursor: p.Cursors[i], Node: nodes[i]} })}
}

// LatestPosts is one look-up on all shards; there are more look-ups only if many of the newest posts are hidden.
func (r queries) LatestPosts(ctx context.Context, _ *int32, _ *string) (*model.PostConnection, error) {
	f := fetchQuery(ctx)
	args, err := prefetch.ParsePage(ctx, f, cursor.LatestPosts)
	if err != nil {
		return nil, err
	}
	page, err := prefetch.Shared(ctx, latestPage{args.After, args.Size}, func() (social.Page[storage.Post], error) { return r.latest(ctx, args) })
	if err != nil {
		return nil, err
	}
	if items := f.Below[0].Items; items != nil {
		prefetch.Fetch(ctx, postRows{page.Rows, items})
	}
	return postConnection(ctx, f, prefetch.PageOfPlaces(r.Cursors, cursor.LatestPosts, page, storage.Post.Place)), nil
}

// latestPage is a page of the newest posts.
type latestPage struct {
	after storage.Place
	size  int
}

func (r queries) latest(ctx context.Context, args prefetch.PageArguments) (page social.Page[storage.Post], err error) {
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return page, err
	}
	e := prefetch.AccessOf(ctx)
	read := func(after storage.Place, limit int) ([]storage.Post, error) {
		rows, err := storage.LatestPostLookups.Get(ctx, loaders.For(ctx).Reader(), storage.PlaceQuery{After: after, Limit: limit})
		if err == nil {
			err = e.FetchShown(a, storage.Each(rows, func(p storage.Post) storage.UserID { return p.Author }))
		}
		return rows, err
	}
	shows := func(p storage.Post) bool { return e.IsShown(a, p.Author) }
	return e.Left().Latest(args.After, args.Size, shows, read)
}

func (postFields) Comments(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.CommentConnection, error) {
	f, p, err := prefetch.Answer[storage.Comment](ctx, obj.Row.PostID)
	if err != nil || p == nil {
		return nil, err
	}
	nodes := commentsOf(ctx, p.Rows, f.Below[0].Items, prefetch.ItemPaths(ctx, f))
	return &model.CommentConnection{Page: prefetch.PageOf(p.Info, nodes, func(i int) model.CommentEdge { return commentEdge(nodes[i].Row, nodes[i]) })}, nil
}

func commentEdge(row storage.Comment, node *model.Comment) model.CommentEdge {
	return model.CommentEdge{Cursor: prefetch.Spell(prefetch.Unsealed, cursor.Comments, row.Place()), Node: node}
}

// commentsOf makes comments that the viewer may see and whose users have been fetched, without those whose writers no longer exist.
func commentsOf(ctx context.Context, rows []storage.Comment, on []*selections.Object, at prefetch.Paths) []*model.Comment {
	l := loaders.For(ctx)
	comments := make([]*model.Comment, 0, len(rows))
	for _, row := range rows {
		if r := l.Users.Load(row.By); r.Found || r.Err != nil {
			comments = append(comments, &model.Comment{Row: row})
		}
	}
	prefetch.ShowParts(ctx, comments, on, at)
	return comments
}

// commentRows has the writers of comments read: comments of writers who do not exist are left out.
type commentRows prefetch.Rows[storage.Comment]

func (w commentRows) AddTo(ctx context.Context, level *prefetch.Level) {
	prefetch.Users{IDs: prefetch.Distinct(storage.Each(w.Rows, writerOf)), Exist: true}.AddTo(ctx, level)
	prefetch.Rows[storage.Comment](w).AddTo(ctx, level)
}

// visiblePosts are the posts that exist and that the audience may see. All of the ids have been fetched.
func visiblePosts(ctx context.Context, a *social.Audience, ids []storage.PostID) (rows []storage.Post) {
	e := prefetch.AccessOf(ctx)
	for _, id := range ids {
		if r := loaders.Of(e.Loaders, storage.PostLookups).Load(id); r.Found && e.IsShown(a, id.Author) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// postErr is why it is not known whether the audience sees a post.
func postErr(ctx context.Context, a *social.Audience, id storage.PostID) error {
	_, err := prefetch.AccessOf(ctx).Shows(a, id.Author)
	return cmp.Or(loaders.Of(loaders.For(ctx), storage.PostLookups).Load(id).Err, err)
}

// visibleComments are the comments that the audience may see: the writer is not hidden, and the post may be seen.
func visibleComments(ctx context.Context, a *social.Audience, ids []storage.CommentID) (rows []storage.Comment) {
	e := prefetch.AccessOf(ctx)
	for _, id := range ids {
		if r := loaders.Of(e.Loaders, storage.CommentLookups).Load(id); r.Found && e.IsShown(a, id.Author) && !a.Hides(r.Value.By) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// favoriteOf names the favorite of a post by a user.
func favoriteOf(user storage.UserID, p storage.Post) storage.Pair {
	return storage.Pair{From: user, To: p.Author, Item: p.Number}
}
