package storage

// A favorite is an edge from a user to a post. It is kept twice, as every edge is: in `favorite`, on
// the shard of the user, which is the truth, and in `favorite_inbox`, its replica, on the shard of the
// post's author. Single favorites are read by [EdgeLookups], and who has favorited a post by [PageLookups] on the FavoriteInbox side.

// FavoritePageLookups reads a range of each user's favorites, in the order of [Edge.Place]. Every
// query is Found. Favorites of posts that have been deleted are listed like others.
var FavoritePageLookups = NewKind[PlaceQuery, []Edge]("pages.favorite", func(q PlaceQuery) (Side, UserID) { return Favorites, q.Of.Author })

// Favorite is a user's change of a favorite of the post.
func (p PostID) Favorite(kind EdgeType, at Micros) EdgeChange {
	return EdgeChange{To: p.Author, Item: p.Number, Type: kind, At: at}
}

// Place is where a favorite is in its user's list: by the time of the favorite, and then by the
// number of the post.
func (e Edge) Place() Place { return Place{e.UpdateTime, e.Item} }
