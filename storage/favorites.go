package storage

import "context"

// A favorite is an edge from a user to a post. It is kept twice, as every edge is: in `favorite`, on
// the shard of the user, which is the truth, and in `favorite_inbox`, its replica, on the shard of the
// post's author. Single favorites are read by [EdgeReader].Edges.

// FavoritesQuery asks for a range of what a user has favorited, newest first. It is comparable, so that
// it can be a loader's key.
type FavoritesQuery struct {
	User  UserID
	After Place // only favorites strictly behind it (older), unless zero
	Limit int   // how many at most, ≥ 1
}

// FavoritedByQuery asks for a range of the users who have favorited a post, newest first. It is
// comparable.
type FavoritedByQuery struct {
	Post  PostID
	After Position // only favorites strictly behind it (older), unless zero
	Limit int      // how many at most, ≥ 1
}

// FavoriteReader reads favorites. Favorites of posts that have been deleted are listed like others.
type FavoriteReader interface {
	// FavoritePages reads a range of each user's favorites, in the order of [FavoritePlace]. Every
	// query is Found.
	FavoritePages(ctx context.Context, queries []FavoritesQuery) []Result[[]Edge]

	// FavoritedByPages reads a range of who has favorited each post, in the order of [Position]. Every
	// query is Found.
	FavoritedByPages(ctx context.Context, queries []FavoritedByQuery) []Result[[]Edge]
}

// FavoritePlace is where a favorite is in its user's list: by the time of the favorite, and then by the
// number of the post.
func FavoritePlace(e Edge) Place { return Place{e.UpdateTime, e.Post} }

// FavoriteChange is what a user does with a post.
type FavoriteChange struct {
	Post PostID
	Type EdgeType // [Favorited] or [None]
	At   Micros   // the clock, read once per request
}

// FavoriteChanger writes what users do, as [EdgeChanger] does.
type FavoriteChanger interface {
	// ChangeFavorite makes a favorite on the Favorites side, or ends it, in one transaction on the
	// user's shard. A row that already has the wanted type is left alone; otherwise its new time is
	// the greater of At and the row's time plus 1. Ending a favorite that never existed writes
	// nothing. ChangeFavorite does not check that the post exists: callers have read it.
	//
	// [ErrForbidden] for a new favorite if one of the user and the author blocks the other.
	// [ErrUserUnknown] if the user does not exist or is being deleted. Of the options, only Inverse
	// is used.
	ChangeFavorite(ctx context.Context, user UserID, change FavoriteChange, o ChangeOptions) (Changed, error)
}
