package fields

import (
	"strconv"
	"time"

	"kith/graph/model"
	"kith/storage"
)

var post = Type{Name: "Post", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":           {Value: &Value{Append: appendPostID}},
	"author":       {Value: object(func(p *model.Post) *model.User { return p.Author })},
	"text":         {Weight: 10, Value: text((*model.Post).Text)}, // as a bio
	"media":        {Length: 9, Weight: 10, Value: files()},
	"createdAt":    {Value: moment((*model.Post).CreatedAt)},
	"editedAt":     {Value: optionalMoment((*model.Post).EditedAt)},
	"attributes":   {Weight: 10, Value: attributes(func(p *model.Post) *storage.Attributes { return &p.Row.Attributes })},
	"commentCount": {Value: count((*model.Post).CommentCount)},
	"comments":     {Weight: pageOfList},

	"favoritesReceivedCount": {Needs: Inverse, Value: count((*model.Post).FavoritesReceivedCount)},
	"viewerHasFavorited":     {Needs: Favorite, Value: optionalOrFails((*model.Post).ViewerHasFavorited, strconv.AppendBool)},
	"favoritedBy":            {Needs: Inverse, Weight: pageOfList},
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
	return append(appendInt(append(appendInt(append(to, `"post_`...), p.Row.Author), '_'), p.Row.Number), '"')
}

// count is a number that has been read with its object.
func count(get func(*model.Post) int32) *Value {
	return number(func(p *model.Post) (int32, error) { return get(p), nil })
}

var comment = Type{Name: "Comment", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":        {Value: text((*model.Comment).ID)},
	"postId":    {Value: text((*model.Comment).PostID)},
	"author":    {Value: object(func(c *model.Comment) *model.User { return c.Author })},
	"text":      {Weight: 10, Value: text((*model.Comment).Text)},
	"createdAt": {Value: moment((*model.Comment).CreatedAt)},
}}

var (
	postConnection = pageOf("PostConnection", (*model.PostConnection).Plain)
	postEdge       = edgeOf("PostEdge", func(e *model.PostEdge) (string, *model.Post) { return e.Cursor, e.Node })

	commentConnection = pageOf("CommentConnection", (*model.CommentConnection).Plain)
	commentEdge       = edgeOf("CommentEdge", func(e *model.CommentEdge) (string, *model.Comment) { return e.Cursor, e.Node })

	favoriteConnection = pageOf("FavoriteConnection", (*model.FavoriteConnection).Plain)
	favoriteEdge       = with(edgeOf("FavoriteEdge", func(e *model.FavoriteEdge) (string, *model.Post) { return e.Cursor, e.Node }), map[string]*Field{
		"favoritedAt": {Value: moment(func(e *model.FavoriteEdge) time.Time { return e.FavoritedAt })},
	})

	favoritedByConnection = pageOf("FavoritedByConnection", (*model.UserConnection).Plain)
	favoritedByEdge       = sinceWhen("FavoritedByEdge", "favoritedAt")

	feedConnection = with(pageOf("FeedConnection", (*model.FeedConnection).Plain), map[string]*Field{
		"complete":  {Needs: Rows, Value: boolean(func(c *model.FeedConnection) bool { return c.Complete })},
		"newerThan": {},
		"unseen":    {Weight: 10},
	})
)
