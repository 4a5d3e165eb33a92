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

// placePage is the arguments of a page of posts or comments, checked.
type placePage struct {
	size  int
	after storage.Place // zero: not given
}

func placePageOf(ctx context.Context, kind cursor.Kind, first, after any) (p placePage, err error) {
	var text string
	if p.size, text, err = forwardPage(first, after); err != nil || text == "" {
		return p, err
	}
	var at, number int64
	err = resolverOf(ctx).Cursors.Decode(kind, text, &at, &number)
	p.after = storage.Place{CreatedAt: storage.Micros(at), Number: number}
	return p, err
}

// asked is how many are read for a page: one more than are shown.
func (p placePage) asked() int { return p.size + 1 }

// info reports what is behind a page. The page ends at its last row, or where its budget ended.
func (p placePage) info(kind cursor.Kind, seal *cursor.Sealer, places []storage.Place, more bool, end storage.Place) *model.PageInfo {
	info := &model.PageInfo{HasNextPage: more}
	if n := len(places); n > 0 {
		first, last := placeCursor(kind, places[0]), placeCursor(kind, places[n-1])
		info.StartCursor, info.EndCursor = &first, &last
	}
	if end != (storage.Place{}) {
		goOn := seal.Seal(kind, int64(end.CreatedAt), end.Number)
		info.EndCursor = &goOn
	}
	return info
}

func placeCursor(kind cursor.Kind, m storage.Place) string {
	return cursor.Encode(kind, int64(m.CreatedAt), m.Number)
}

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
	ids := make([]storage.UserID, len(rows))
	for i, row := range rows {
		ids[i] = row.Author
	}
	return ids
}

func (r userFields) Posts(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.PostConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[placePage](request, f)
	if err != nil {
		return nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil || a.Hides(obj.UserID) {
		return nil, err
	}
	page := mustHave(request, &request.posts, postList{obj.UserID, args})
	if page.Err != nil {
		return nil, page.Err
	}
	return r.postConnection(ctx, f, cursor.Posts, args, page.Value), nil
}

// postConnection makes a page of posts, which have been fetched.
func (r *Resolver) postConnection(ctx context.Context, f *selections.Field, kind cursor.Kind, args placePage, page social.Page[storage.Post]) *model.PostConnection {
	places := make([]storage.Place, len(page.Rows))
	for i, row := range page.Rows {
		places[i] = row.Place()
	}
	c := &model.PostConnection{PageInfo: args.info(kind, r.Cursors, places, page.More, page.End), Nodes: make([]*model.Post, len(page.Rows))}
	if items := f.Below[0].Items; items != nil {
		c.Nodes = postsOf(ctx, page.Rows, items, itemPaths(ctx, f))
	}
	c.Edges = make([]*model.PostEdge, len(page.Rows))
	for i, node := range c.Nodes {
		c.Edges[i] = &model.PostEdge{Cursor: placeCursor(kind, places[i]), Node: node}
	}
	return c
}

// LatestPosts answers `latestPosts`. It is one look-up on all shards; there are more look-ups
// only if many of the newest posts are hidden.
func (r queries) LatestPosts(ctx context.Context, first *int32, after *string) (*model.PostConnection, error) {
	f := fetchQuery(ctx)
	args, err := placePageOf(ctx, cursor.LatestPosts, first, after)
	if err != nil {
		return nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	read := func(after storage.Place, limit int) ([]storage.Post, error) {
		return r.reads().LatestPosts(ctx, after, limit)
	}
	rows, err := read(args.after, args.asked())
	if err != nil {
		return nil, err
	}
	page, err := a.ShowPosts(rows, args.asked(), args.size, read)
	if err != nil {
		return nil, err
	}
	if items := f.Below[0].Items; items != nil {
		fetch(ctx, wanted{posts: page.Rows, on: items})
	}
	return r.postConnection(ctx, f, cursor.LatestPosts, args, page), nil
}

func (r postFields) Comments(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.CommentConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[placePage](request, f)
	if err != nil {
		return nil, err
	}
	if _, err := audienceOf(ctx); err != nil {
		return nil, err
	}
	page := mustHave(request, &request.comments, commentList{obj.Row.PostID, args})
	if page.Err != nil {
		return nil, page.Err
	}
	rows := page.Value.Rows
	places := make([]storage.Place, len(rows))
	for i, row := range rows {
		places[i] = row.Place()
	}
	c := &model.CommentConnection{PageInfo: args.info(cursor.Comments, r.Cursors, places, page.Value.More, page.Value.End)}
	c.Nodes = commentsOf(ctx, rows, f.Below[0].Items, itemPaths(ctx, f))
	c.Edges = make([]*model.CommentEdge, len(c.Nodes))
	for i, node := range c.Nodes {
		c.Edges[i] = &model.CommentEdge{Cursor: placeCursor(cursor.Comments, node.Row.Place()), Node: node}
	}
	return c, nil
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
