package sqlstore

import (
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A userRow scans rows that begin with whole numbers, a user's among them, and end with its
// texts: handle, name, bio, avatar_url.
type userRow struct {
	db.Numbers
	texts [4]sql.RawBytes
}

// userNumbers is how many numbers a user has besides the id: created_at, updated_at,
// followings_visibility, followers_visibility, undiscoverable.
const userNumbers = 5

// newUserRow is for rows of so many numbers.
func newUserRow(numbers int) *userRow {
	r := new(userRow)
	r.Numbers = *db.NewNumbers(numbers, &r.texts[0], &r.texts[1], &r.texts[2], &r.texts[3])
	return r
}

// user is made of the texts, and of the userNumbers from one on.
func (r *userRow) user(id storage.UserID, from int) storage.User {
	return storage.User{
		ID: id, CreatedAt: storage.Micros(r.At(from)), UpdatedAt: storage.Micros(r.At(from + 1)),
		FollowingsVisibility: storage.Visibility(r.At(from + 2)), FollowersVisibility: storage.Visibility(r.At(from + 3)),
		Undiscoverable: r.At(from+4) != 0,
		Handle:         string(r.texts[0]), Name: string(r.texts[1]), Bio: string(r.texts[2]), AvatarURL: string(r.texts[3]),
	}
}

// countNumbers is how many numbers a user's counts are: version, following_count, follower_count,
// friend_count, post_count, favorite_count, total_favorited.
const countNumbers = 7

// counts are the countNumbers from one on.
func (r *userRow) counts(from int) storage.Counts {
	return storage.Counts{
		Version: r.At(from), Following: r.At(from + 1), Follower: r.At(from + 2), Friend: r.At(from + 3), Posts: r.At(from + 4),
		Favorites: r.At(from + 5), Favorited: r.At(from + 6),
	}
}

// lockedNumbers are how many numbers a statement that locks counts reads of them: the user's id, the counts
// and the flags of what is packed.
const lockedNumbers = 9

// lockedCounts are the counts as such a statement reads them, at the beginning of the row.
func (r *userRow) lockedCounts() storage.Counts {
	return storage.Counts{
		Following: r.At(1), Follower: r.At(2), Friend: r.At(3), Posts: r.At(4), Favorites: r.At(5), Favorited: r.At(6), Version: r.At(7),
	}
}
