package resolvers

import (
	"cmp"
	"context"

	"kith/accounts/identity"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

var (
	userPosts = placeList[storage.UserID, storage.PostsQuery, storage.Post]{
		kind: cursor.Posts, of: userName, pages: storage.PostPageLookups, place: storage.Post.Place, ofUser: true,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PostsQuery {
			return storage.PostsQuery{Author: of.Author, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, p storage.Post) bool { return !a.Hides(p.Author) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Post, on []*selections.Object) wanted {
			return wantedPosts{rows, on}
		},
	}
	postComments = placeList[storage.Post, storage.CommentsQuery, storage.Comment]{
		kind: cursor.Comments, of: postName, pages: storage.CommentPageLookups, place: storage.Comment.Place,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.CommentsQuery {
			return storage.CommentsQuery{Post: of, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, c storage.Comment) bool { return !a.Hides(c.By) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Comment, on []*selections.Object) wanted {
			return wantedComments{rows, on}
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
func postsOf(ctx context.Context, rows []storage.Post, on []*selections.Object, at paths) []*model.Post {
	posts, made := make([]*model.Post, len(rows)), make([]model.Post, len(rows))
	needs := needsOf(ctx, on)
	for i, row := range rows {
		if made[i].Row, made[i].Files, posts[i] = row, model.FilesOf(row), &made[i]; needs&fields.Favorite != 0 {
			made[i].Favorited = hasFavorited(ctx, row.PostID)
		}
	}
	if len(posts) > 0 {
		showParts(ctx, posts, on, at)
	}
	return posts
}

// wantedPosts are posts whose rows are known.
type wantedPosts wantedRows[storage.Post]

func (w wantedPosts) add(ctx context.Context, b *batch) {
	if needsOf(ctx, w.on)&fields.Favorite != 0 && b.viewer != 0 {
		b.ask(loaders.Of(b.loaders, storage.EdgeLookups[storage.Favorites]).Ask(storage.Each(w.rows, func(p storage.Post) storage.Pair {
			pair, _ := favoriteOf(ctx, p.PostID)
			return pair
		})))
	}
	wantedRows[storage.Post](w).add(ctx, b)
}

// postName names a post as what has lists.
func postName(p storage.Post) storage.PostID { return p.PostID }

func askPostNodes(ctx context.Context, b *batch, ids []nodeID, on []*selections.Object) {
	wantedPostIDs{storage.Each(ids, nodeID.post), on}.add(ctx, b)
}

// wantedPostIDs are posts by their ids.
type wantedPostIDs struct {
	ids []storage.PostID
	on  []*selections.Object
}

func (w wantedPostIDs) add(_ context.Context, b *batch) {
	if len(w.ids) == 0 {
		return
	}
	b.addOpens(storage.FavoriteInbox, storage.Each(w.ids, func(id storage.PostID) storage.UserID { return id.Author }))
	b.ask(loaders.Of(b.loaders, storage.PostLookups).Ask(w.ids))
	b.seen = append(b.seen, func(ctx context.Context, a *social.Audience) {
		b.next = append(b.next, wantedPosts{visiblePosts(ctx, a, w.ids), w.on})
	})
}

func showPostNode(ctx context.Context, id nodeID, on []*selections.Object, at paths) (model.Node, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := postErr(ctx, a, id.post()); err != nil {
		failAt(ctx, at(0), err)
	}
	return orNil(postsOf(ctx, visiblePosts(ctx, a, []storage.PostID{id.post()}), on, at)), nil
}

func askCommentNodes(_ context.Context, b *batch, nodes []nodeID, on []*selections.Object) {
	ids := storage.Each(nodes, nodeID.comment)
	b.addOpens(storage.FavoriteInbox, storage.Each(nodes, nodeID.user))
	b.ask(loaders.Of(b.loaders, storage.CommentLookups).Ask(ids))
	b.seen = append(b.seen, func(ctx context.Context, a *social.Audience) {
		b.next = append(b.next, wantedComments{visibleComments(ctx, a, ids), on})
	})
}

func showCommentNode(ctx context.Context, id nodeID, on []*selections.Object, at paths) (model.Node, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	_, err = accessOf(ctx).shows(a, id.comment().Author)
	if err = cmp.Or(loaders.Of(loaders.For(ctx), storage.CommentLookups).Load(id.comment()).Err, err); err != nil {
		failAt(ctx, at(0), err)
	}
	return orNil(commentsOf(ctx, visibleComments(ctx, a, []storage.CommentID{id.comment()}), on, at)), nil
}

func authorsOf(rows []storage.Post) []storage.UserID {
	return storage.Each(rows, func(row storage.Post) storage.UserID { return row.Author })
}

func (userFields) Posts(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.PostConnection, error) {
	f, p, err := answerTo[*rowsPage[storage.Post]](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	return postConnection(ctx, f, p), nil
}

// postConnection makes a page of posts, which have been fetched.
func postConnection(ctx context.Context, f *selections.Field, p *rowsPage[storage.Post]) *model.PostConnection {
	nodes := make([]*model.Post, len(p.rows))
	if items := f.Below[0].Items; items != nil {
		nodes = postsOf(ctx, p.rows, items, itemPaths(ctx, f))
	}
	return &model.PostConnection{
		PageInfo: p.info, Nodes: nodes,
		Edges: edges(len(nodes), func(i int) model.PostEdge { return model.PostEdge{Cursor: p.cursors[i], Node: nodes[i]} }),
	}
}

// LatestPosts is one look-up on all shards; there are more look-ups
// only if many of the newest posts are hidden.
func (r queries) LatestPosts(ctx context.Context, _ *int32, _ *string) (*model.PostConnection, error) {
	f := fetchQuery(ctx)
	args, err := pageOf(ctx, f, cursor.LatestPosts)
	if err != nil {
		return nil, err
	}
	page, err := shared(ctx, latestPage{args.after, args.size}, func() (social.Page[storage.Post], error) { return r.latest(ctx, args) })
	if err != nil {
		return nil, err
	}
	if items := f.Below[0].Items; items != nil {
		fetch(ctx, wantedPosts{page.Rows, items})
	}
	return postConnection(ctx, f, pageOfPlaces(r.Resolver, cursor.LatestPosts, page, storage.Post.Place)), nil
}

// latestPage is a page of the newest posts.
type latestPage struct {
	after storage.Place
	size  int
}

func (r queries) latest(ctx context.Context, args pageArguments) (page social.Page[storage.Post], err error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return page, err
	}
	e := accessOf(ctx)
	read := func(after storage.Place, limit int) ([]storage.Post, error) {
		rows, err := storage.LatestPostLookups.Get(ctx, r.reads(), storage.PostsQuery{After: after, Limit: limit})
		if err == nil {
			err = e.fetchShown(a, authorsOf(rows))
		}
		return rows, err
	}
	shows := func(p storage.Post) bool { return e.isShown(a, p.Author) }
	return e.allowance.Latest(args.after, args.size, shows, read)
}

func (postFields) Comments(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.CommentConnection, error) {
	f, p, err := answerTo[*rowsPage[storage.Comment]](ctx, obj.Row.PostID)
	if err != nil || p == nil {
		return nil, err
	}
	nodes := commentsOf(ctx, p.rows, f.Below[0].Items, itemPaths(ctx, f))
	return &model.CommentConnection{
		PageInfo: p.info, Nodes: nodes,
		Edges: edges(len(nodes), func(i int) model.CommentEdge { return commentEdge(nodes[i].Row, nodes[i]) }),
	}, nil
}

func commentEdge(row storage.Comment, node *model.Comment) model.CommentEdge {
	return model.CommentEdge{Cursor: spell(unsealed, cursor.Comments, row.Place()), Node: node}
}

// commentsOf makes comments that the viewer may see and whose users have been fetched, without those
// whose writers no longer exist.
func commentsOf(ctx context.Context, rows []storage.Comment, on []*selections.Object, at paths) []*model.Comment {
	l := loaders.For(ctx)
	comments := make([]*model.Comment, 0, len(rows))
	for _, row := range rows {
		if r := l.Users.Load(row.By); r.Found || r.Err != nil {
			comments = append(comments, &model.Comment{Row: row})
		}
	}
	if len(comments) > 0 {
		showParts(ctx, comments, on, at)
	}
	return comments
}

// wantedComments has the writers of comments read: comments of writers who do not exist are left out.
type wantedComments wantedRows[storage.Comment]

func (w wantedComments) add(ctx context.Context, b *batch) {
	wantedUsers{ids: distinctOf(storage.Each(w.rows, writerOf)), exist: true}.add(ctx, b)
	wantedRows[storage.Comment](w).add(ctx, b)
}

// visiblePosts are the posts that exist and that the audience may see. All of the ids have been
// fetched.
func visiblePosts(ctx context.Context, a *social.Audience, ids []storage.PostID) (rows []storage.Post) {
	e := accessOf(ctx)
	for _, id := range ids {
		if r := loaders.Of(e.loaders, storage.PostLookups).Load(id); r.Found && e.isShown(a, id.Author) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// postErr is why it is not known whether the audience sees a post.
func postErr(ctx context.Context, a *social.Audience, id storage.PostID) error {
	_, err := accessOf(ctx).shows(a, id.Author)
	return cmp.Or(loaders.Of(loaders.For(ctx), storage.PostLookups).Load(id).Err, err)
}

// visibleComments are the comments that the audience may see: the writer is not hidden, and the post
// may be seen.
func visibleComments(ctx context.Context, a *social.Audience, ids []storage.CommentID) (rows []storage.Comment) {
	e := accessOf(ctx)
	for _, id := range ids {
		if r := loaders.Of(e.loaders, storage.CommentLookups).Load(id); r.Found && e.isShown(a, id.Author) && !a.Hides(r.Value.By) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// favoriteOf names the viewer's favorite of a post; false if the viewer is not signed in.
func favoriteOf(ctx context.Context, post storage.PostID) (storage.Pair, bool) {
	viewer, ok := identity.Of(ctx)
	return storage.Pair{From: viewer.ID, To: post.Author, Post: post.Number}, ok
}

// hasFavorited says whether the viewer has favorited a post, if that has been fetched.
func hasFavorited(ctx context.Context, post storage.PostID) (is storage.Result[bool]) {
	pair, signedIn := favoriteOf(ctx, post)
	if !signedIn {
		return is
	}
	r := loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Favorites]).Load(pair)
	return storage.Result[bool]{Value: r.Value.Type == storage.Favorited, Found: true, Err: r.Err}
}
