package rediscache

import (
	"strconv"

	"kith/storage"
	"kith/storage/wire"
)

// A user is a hash:
//
//	v  the version of user_counts, as decimal text
//	p  the profile, see [wire.AppendProfile]; absent while only the version is known
//	c  the counts: following, follower, friend, posts, favorites, favorited as varints
//	l  the token of who is filling it
//
// p, c and v are of one moment. A user that does not exist is kept, too, with version 0.

var errMalformed = wire.ErrMalformed

// parseUser reads the fields of a user's hash.
func parseUser(id storage.UserID, profile, version, counts string) (storage.Profile, error) {
	n, err := strconv.ParseInt(version, 10, 64)
	p, malformed := wire.ParseProfile(id, profile, counts, n)
	if malformed != nil || err != nil && p.Counted {
		return storage.Profile{}, errMalformed
	}
	return p, nil
}
