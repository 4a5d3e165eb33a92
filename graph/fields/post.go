package fields

import (
	"strconv"
	"time"

	"kith/graph/model"
)

var post = Type{Name: "Post", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":           {Value: &Value{Append: appendPostID}},
	"author":       {Ahead: Author, Value: object(func(p *model.Post) *model.User { return p.Author })},
	"text":         {Weight: 10, Value: text((*model.Post).Text)}, // as a bio
	"media":        {Length: 9, Weight: 10, Value: files()},
	"createdAt":    {Value: moment((*model.Post).CreatedAt)},
	"editedAt":     {Value: optionalMoment((*model.Post).EditedAt)},
	"commentCount": {Value: count((*model.Post).CommentCount)},
	"comments":     {Ahead: Comments, Weight: 2},

	"favoriteCount":      {Needs: Inverse, Value: count((*model.Post).FavoriteCount)},
	"viewerHasFavorited": {Ahead: HasFavorited, Value: &Value{Append: appendFavorited, Fails: notKnown}},
	"favoritedBy":        {Ahead: FavoritedBy, Needs: Inverse, Weight: 2},
}}

var media = Type{Name: "Media", Fields: map[string]*Field{
	"name": {Value: text(func(m *model.Media) string { return m.Name })},
	"url":  {Value: text(func(m *model.Media) string { return m.URL })},
	"kind": {Value: text(func(m *model.Media) model.MediaKind { return m.Kind })},
}}

func files() *Value {
	v := list(func(p *model.Post) []*model.Media { return p.Files.List })
	v.Fails = func(v any) bool { return v.(*model.Post).Files.Err != nil }
	return v
}

func appendPostID(to []byte, v any) []byte {
	p := v.(*model.Post)
	return append(appendInt(append(appendInt(append(to, `"post_`...), int64(p.Row.Author)), '_'), p.Row.Number), '"')
}

func appendFavorited(to []byte, v any) []byte {
	is, _ := v.(*model.Post).ViewerHasFavorited()
	if is == nil {
		return append(to, "null"...)
	}
	return strconv.AppendBool(to, *is)
}

func notKnown(v any) bool {
	_, err := v.(*model.Post).ViewerHasFavorited()
	return err != nil
}

// count is a number that has been read with its object.
func count(get func(*model.Post) int32) *Value {
	return number(func(p *model.Post) (int32, error) { return get(p), nil })
}

var comment = Type{Name: "Comment", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":        {Value: text((*model.Comment).ID)},
	"postId":    {Value: text((*model.Comment).PostID)},
	"author":    {Ahead: Author, Value: object(func(c *model.Comment) *model.User { return c.Author })},
	"text":      {Weight: 10, Value: text((*model.Comment).Text)},
	"createdAt": {Value: moment((*model.Comment).CreatedAt)},
}}

var (
	postConnection = pageOf("PostConnection", func(c *model.PostConnection) ([]*model.PostEdge, []*model.Post, *model.PageInfo) {
		return c.Edges, c.Nodes, c.PageInfo
	})
	postEdge = edgeOf("PostEdge", func(e *model.PostEdge) (string, *model.Post) { return e.Cursor, e.Node })

	commentConnection = pageOf("CommentConnection", func(c *model.CommentConnection) ([]*model.CommentEdge, []*model.Comment, *model.PageInfo) {
		return c.Edges, c.Nodes, c.PageInfo
	})
	commentEdge = edgeOf("CommentEdge", func(e *model.CommentEdge) (string, *model.Comment) { return e.Cursor, e.Node })

	favoriteConnection = pageOf("FavoriteConnection", func(c *model.FavoriteConnection) ([]*model.FavoriteEdge, []*model.Post, *model.PageInfo) {
		return c.Edges, c.Nodes, c.PageInfo
	})
	favoriteEdge = timed(edgeOf("FavoriteEdge", func(e *model.FavoriteEdge) (string, *model.Post) { return e.Cursor, e.Node }),
		func(e *model.FavoriteEdge) time.Time { return e.FavoritedAt })

	favoritedByConnection = pageOf("FavoritedByConnection", func(c *model.FavoritedByConnection) ([]*model.FavoritedByEdge, []*model.User, *model.PageInfo) {
		return c.Edges, c.Nodes, c.PageInfo
	})
	favoritedByEdge = timed(edgeOf("FavoritedByEdge", func(e *model.FavoritedByEdge) (string, *model.User) { return e.Cursor, e.Node }),
		func(e *model.FavoritedByEdge) time.Time { return e.FavoritedAt })

	feedConnection = feed(pageOf("FeedConnection", func(c *model.FeedConnection) ([]*model.PostEdge, []*model.Post, *model.PageInfo) {
		return c.Edges, c.Nodes, c.PageInfo
	}))
)

// pageOf is a connection, by its parts.
func pageOf[C, E, N any](name string, parts func(*C) ([]*E, []*N, *model.PageInfo)) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"edges":    {Ahead: Edges, Needs: Rows, Value: list(func(c *C) []*E { edges, _, _ := parts(c); return edges })},
		"nodes":    {Ahead: Item, Needs: Rows, Value: list(func(c *C) []*N { _, nodes, _ := parts(c); return nodes })},
		"pageInfo": {Needs: Rows, Value: object(func(c *C) *model.PageInfo { _, _, info := parts(c); return info })},
	}}
}

// edgeOf is an edge, by its parts.
func edgeOf[E, N any](name string, parts func(*E) (cursor string, node *N)) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"cursor": {Needs: Cursors, Value: text(func(e *E) string { cursor, _ := parts(e); return cursor })},
		"node":   {Ahead: Item, Value: object(func(e *E) *N { _, node := parts(e); return node })},
	}}
}

func timed[E any](edge Type, at func(*E) time.Time) Type {
	edge.Fields["favoritedAt"] = &Field{Value: moment(at)}
	return edge
}

func feed(page Type) Type {
	page.Fields["complete"] = &Field{Needs: Rows, Value: boolean(func(c *model.FeedConnection) bool { return c.Complete })}
	page.Fields["newerThan"] = &Field{}
	return page
}

var newerPosts = made("NewerPosts", "count", "hasMore")

var (
	favoritePayload      = made("FavoritePayload", "changed", "post", "viewer", "favoriteEdge", "consistencyToken")
	publishPostPayload   = made("PublishPostPayload", "published", "post", "viewer")
	editPostPayload      = made("EditPostPayload", "changed", "post")
	deletePostPayload    = made("DeletePostPayload", "changed", "viewer")
	addCommentPayload    = made("AddCommentPayload", "added", "comment", "post")
	deleteCommentPayload = made("DeleteCommentPayload", "changed")
)
