package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// postsOf makes posts that the viewer may see and whose users have been fetched.
func postsOf(ctx context.Context, rows []storage.Post, on []*selections.Object, at paths) []*model.Post {
	posts, made := make([]*model.Post, len(rows)), make([]model.Post, len(rows))
	for i, row := range rows {
		made[i].Row, made[i].Files, made[i].Favorited, posts[i] = row, model.FilesOf(row), hasFavorited(ctx, row.PostID, on), &made[i]
	}
	asked := aheadOn(fieldsOn(on), fields.Author, storage.Forward)
	if asked == nil || len(rows) == 0 {
		return posts
	}
	for i, u := range usersOf(ctx, wanted{users: authorsOf(rows), exist: true, on: belowOf(asked)}, at.below(asked)) {
		posts[i].Author = u
	}
	return posts
}

func authorsOf(rows []storage.Post) []storage.UserID {
	return storage.Each(rows, func(row storage.Post) storage.UserID { return row.Author })
}

func (r userFields) Posts(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.PostConnection, error) {
	f, page, err := userPosts.answer(ctx, storage.PostID{Author: obj.UserID})
	if err != nil || page == nil {
		return nil, err
	}
	return r.postConnection(ctx, f, cursor.Posts, *page), nil
}

// postConnection makes a page of posts, which have been fetched.
func (r *Resolver) postConnection(ctx context.Context, f *selections.Field, kind cursor.Kind, page social.Page[storage.Post]) *model.PostConnection {
	cursors, info := placeInfo(r, kind, page, storage.Post.Place)
	nodes := make([]*model.Post, len(page.Rows))
	if items := f.Below[0].Items; items != nil {
		nodes = postsOf(ctx, page.Rows, items, itemPaths(ctx, f))
	}
	return &model.PostConnection{
		PageInfo: info, Nodes: nodes,
		Edges: edges(len(nodes), func(i int) model.PostEdge { return model.PostEdge{Cursor: cursors[i], Node: nodes[i]} }),
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
		fetch(ctx, wanted{posts: page.Rows, on: items})
	}
	return r.postConnection(ctx, f, cursor.LatestPosts, page), nil
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
		rows, err := r.reads().LatestPosts(ctx, after, limit)
		if err == nil {
			err = e.fetchShown(a, authorsOf(rows))
		}
		return rows, err
	}
	shows := func(p storage.Post) bool { return e.isShown(a, p.Author) }
	return e.allowance.Latest(args.after, args.size, shows, read)
}

func (r postFields) Comments(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.CommentConnection, error) {
	f, page, err := postComments.answer(ctx, obj.Row.PostID)
	if err != nil || page == nil {
		return nil, err
	}
	_, info := placeInfo(r.Resolver, cursor.Comments, *page, storage.Comment.Place)
	nodes := commentsOf(ctx, page.Rows, f.Below[0].Items, itemPaths(ctx, f))
	return &model.CommentConnection{
		PageInfo: info, Nodes: nodes,
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
	comments, by := make([]*model.Comment, 0, len(rows)), make([]storage.UserID, 0, len(rows))
	for _, row := range rows {
		if r := l.Users.Load(row.By); r.Found || r.Err != nil {
			comments, by = append(comments, &model.Comment{Row: row}), append(by, row.By)
		}
	}
	asked := aheadOn(fieldsOn(on), fields.Author, storage.Forward)
	if asked == nil || len(by) == 0 {
		return comments
	}
	for i, u := range usersOf(ctx, wanted{users: by, exist: true, on: belowOf(asked)}, at.below(asked)) {
		comments[i].Author = u
	}
	return comments
}
