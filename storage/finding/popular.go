// Package finding is the contract by which users are found whom nobody has named: by words, and by how many follow them.
package finding

import "kith/storage"

// PopularLookups lists the most followed of the users who were active on or after a day: most followed
// first, ties by smaller id. Users without followers and users who do not
// exist are left out. A user is active on the day on which it is created, follows, blocks,
// sends a request or changes its profile, on the day of a new follow that enters it, and on
// those of [storage.Store].MarkActive. Every query is Found.
//
// [PopularSample] users of each shard are looked at: those of the greatest class first,
// within a class the most recently active first, then those of greater id. The class of a user
// is the number of digits of its follower count, and the first two digits: an index on the
// class is written a hundred times less often than one on a large count itself. The list is
// exact unless a class has more users than the sample; then it may be wrong about users whose
// follower counts are within a tenth of the last ones listed.
var PopularLookups = storage.NewKind[PopularQuery, []PopularUser]("popular", nil)

// PopularQuery asks for users who were active since a day.
type PopularQuery struct {
	Since storage.Day
	Limit int // in all
}

// PopularSample is how many users of each shard [PopularLookups] looks at.
const PopularSample = 2000

// PopularUser is a user with its number of followers.
type PopularUser struct {
	User      storage.UserID
	Followers int64
}

// Rank is the place of a user among those of a shard: by the number of followers, roughly, then by the last day on which the user was
// active, then by the id, each descending.
type Rank struct {
	Class     int // of the number of followers: its digits times 100, plus its first two digits
	ActiveDay storage.Day
	User      storage.UserID
}
