package fields

import (
	"strconv"

	"kith/graph/model"
)

var post = Type{Name: "Post", Is: []string{"Node"}, Fields: map[string]*Field{
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

var comment = Type{Name: "Comment", Is: []string{"Node"}, Fields: map[string]*Field{
	"id":        {},
	"postId":    {},
	"author":    {Ahead: Author},
	"text":      {Weight: 10},
	"createdAt": {},
}}

var (
	commentConnection = pageOf("CommentConnection")
	commentEdge       = edgeOf("CommentEdge")

	favoriteConnection    = pageOf("FavoriteConnection")
	favoriteEdge          = timedEdgeOf("FavoriteEdge")
	favoritedByConnection = pageOf("FavoritedByConnection")
	favoritedByEdge       = timedEdgeOf("FavoritedByEdge")
)

var postConnection = Type{Name: "PostConnection", Fields: map[string]*Field{
	"edges":    {Ahead: Edges, Needs: Rows, Value: list(func(c *model.PostConnection) []*model.PostEdge { return c.Edges })},
	"nodes":    {Ahead: Item, Needs: Rows, Value: list(func(c *model.PostConnection) []*model.Post { return c.Nodes })},
	"pageInfo": {Needs: Rows, Value: object(func(c *model.PostConnection) *model.PageInfo { return c.PageInfo })},
}}

var postEdge = Type{Name: "PostEdge", Fields: map[string]*Field{
	"cursor": {Needs: Cursors, Value: text(func(e *model.PostEdge) string { return e.Cursor })},
	"node":   {Ahead: Item, Value: object(func(e *model.PostEdge) *model.Post { return e.Node })},
}}

var feedConnection = Type{Name: "FeedConnection", Fields: map[string]*Field{
	"edges":     {Ahead: Edges, Needs: Rows, Value: list(func(c *model.FeedConnection) []*model.PostEdge { return c.Edges })},
	"nodes":     {Ahead: Item, Needs: Rows, Value: list(func(c *model.FeedConnection) []*model.Post { return c.Nodes })},
	"pageInfo":  {Needs: Rows, Value: object(func(c *model.FeedConnection) *model.PageInfo { return c.PageInfo })},
	"complete":  {Needs: Rows, Value: boolean(func(c *model.FeedConnection) bool { return c.Complete })},
	"newerThan": {},
}}

var newerPosts = made("NewerPosts", "count", "hasMore")

func pageOf(name string) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"edges":    {Ahead: Edges, Needs: Rows},
		"nodes":    {Ahead: Item, Needs: Rows},
		"pageInfo": {Needs: Rows},
	}}
}

func edgeOf(name string) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"cursor": {Needs: Cursors},
		"node":   {Ahead: Item},
	}}
}

func timedEdgeOf(name string) Type {
	t := edgeOf(name)
	t.Fields["favoritedAt"] = &Field{}
	return t
}

var (
	favoritePayload      = made("FavoritePayload", "changed", "post", "viewer", "favoriteEdge", "consistencyToken")
	publishPostPayload   = made("PublishPostPayload", "published", "post", "viewer")
	editPostPayload      = made("EditPostPayload", "changed", "post")
	deletePostPayload    = made("DeletePostPayload", "changed", "viewer")
	addCommentPayload    = made("AddCommentPayload", "added", "comment", "post")
	deleteCommentPayload = made("DeleteCommentPayload", "changed")
)
