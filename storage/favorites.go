package storage

// A favorite is an edge from a user to a post. It is kept twice, as every edge is: in `favorite`, on
// the shard of the user, which is the truth, and in `favorite_inbox`, its replica, on the shard of the
// post's author. Single favorites are read by [EdgeLookups], and who has favorited a post by [PageLookups] on the FavoriteInbox side.

// FavoritesQuery asks for a range of what a user has favorited, newest first. It is comparable, so that
// it can be a loader's key.
type FavoritesQuery struct {
	User  UserID
	After Place // only favorites strictly behind it (older), unless zero
	Limit int   // how many at most, ≥ 1
}

// FavoritePageLookups reads a range of each user's favorites, in the order of [Edge.Place]. Every
// query is Found. Favorites of posts that have been deleted are listed like others.
var FavoritePageLookups = newLookupKind[FavoritesQuery, []Edge]("pages.favorite", func(q FavoritesQuery) (Side, UserID) { return Favorites, q.User })

// Favorite is a user's change of a favorite of the post.
func (p PostID) Favorite(kind EdgeType, at Micros) EdgeChange {
	return EdgeChange{To: p.Author, Item: p.Number, Type: kind, At: at}
}

// Place is where a favorite is in its user's list: by the time of the favorite, and then by the
// number of the post.
func (e Edge) Place() Place { return Place{e.UpdateTime, e.Item} }
