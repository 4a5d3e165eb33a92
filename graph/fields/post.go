package fields

var post = Type{Name: "Post", Is: []string{"Node"}, Fields: map[string]*Field{
	"id":           {},
	"author":       {Ahead: Author},
	"text":         {Weight: 10}, // as a bio
	"media":        {Length: 9, Weight: 10},
	"createdAt":    {},
	"editedAt":     {},
	"commentCount": {},
	"comments":     {Ahead: Comments, Weight: 2},

	"favoriteCount":      {Needs: Inverse},
	"viewerHasFavorited": {Ahead: HasFavorited},
	"favoritedBy":        {Ahead: FavoritedBy, Needs: Inverse, Weight: 2},
}}

var media = made("Media", "name", "url", "kind")

var comment = Type{Name: "Comment", Is: []string{"Node"}, Fields: map[string]*Field{
	"id":        {},
	"postId":    {},
	"author":    {Ahead: Author},
	"text":      {Weight: 10},
	"createdAt": {},
}}

var (
	postConnection    = pageOf("PostConnection")
	postEdge          = edgeOf("PostEdge")
	commentConnection = pageOf("CommentConnection")
	commentEdge       = edgeOf("CommentEdge")

	favoriteConnection    = pageOf("FavoriteConnection")
	favoriteEdge          = timedEdgeOf("FavoriteEdge")
	favoritedByConnection = pageOf("FavoritedByConnection")
	favoritedByEdge       = timedEdgeOf("FavoritedByEdge")
)

var feedConnection = Type{Name: "FeedConnection", Fields: map[string]*Field{
	"edges":     {Ahead: Edges, Needs: Rows},
	"nodes":     {Ahead: Item, Needs: Rows},
	"pageInfo":  {Needs: Rows},
	"complete":  {Needs: Rows},
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
