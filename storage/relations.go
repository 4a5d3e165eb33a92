package storage

import (
	"context"
)

// RelationReader reads what lies beside the edges of a user, on its own shard.
type RelationReader interface {
	// Blocks lists everyone whom a user blocks or who blocks it, ascending, each once.
	// Every user is Found.
	Blocks(ctx context.Context, users []UserID) []Result[[]UserID]

	// CountEdges counts edges of an owner without reading them all. Every query is Found.
	CountEdges(ctx context.Context, side Side, queries []EdgeCountQuery) []Result[int]

	// Marks reads what users have noted on whom they follow.
	Marks(ctx context.Context, pairs []Pair) []Result[EdgeMark]

	// Specials lists whom each user follows specially, ascending. Every user is Found.
	Specials(ctx context.Context, users []UserID) []Result[[]UserID]

	// Messages reads what was written with requests that are pending. One without a
	// message is not Found.
	Messages(ctx context.Context, requests []Pair) []Result[string]

	// Dismissals lists whom each user does not want to have suggested, dismissed at or
	// after a time, ascending. Every query is Found.
	Dismissals(ctx context.Context, queries []DismissalQuery) []Result[[]UserID]
}

// EdgeCountQuery asks for a number of edges. It is comparable, so that it can be a
// loader's key.
type EdgeCountQuery struct {
	Owner UserID
	Type  EdgeType // 0 stands for 1, as in [PageQuery]
	Since Micros   // only edges newer than that; 0 is open
	Limit int      // count to here at most, ≥ 1
}

// EdgeMark is what a user keeps about one it follows, for itself: beside the edge, not
// in it, so that it does not move the edge in lists.
type EdgeMark struct {
	Special bool
	Remark  string // at most MaxRemarkLength characters
}

// MarkChange is the new values; nil leaves one as it is.
type MarkChange struct {
	Special *bool
	Remark  *string
}

// Bounds on marks.
const (
	MaxRemarkLength = 100  // characters
	MaxSpecials     = 1000 // special follows of one user
)

// MarkWriter writes marks.
type MarkWriter interface {
	// SetMark changes the mark on From → To and returns it as it is then, and whether that
	// changed it. It raises the version of From. A mark with neither is removed.
	// [ErrNotFollowing]; [ErrLimitReached] beyond [MaxSpecials].
	SetMark(ctx context.Context, pair Pair, change MarkChange) (mark EdgeMark, changed bool, err error)
}

// DismissalQuery asks whom a user has dismissed since a time. It is comparable.
type DismissalQuery struct {
	User  UserID
	Since Micros
}

// MaxDismissals is how many dismissals of a user are kept, the newest.
const MaxDismissals = 5000

// SuggestionStore keeps what suggestions need besides edges.
type SuggestionStore interface {
	// Dismiss remembers that a user does not want another suggested, from At on, and
	// forgets those from before Forget and what is beyond [MaxDismissals]. Of several calls
	// for the same two the latest At counts. [ErrUserUnknown].
	Dismiss(ctx context.Context, user, dismissed UserID, at, forget Micros) error

	// Popular lists the most followed among the users who have been active on or after a
	// day, most followed first, ties by smaller id, at most so many in all. Nobody without
	// a follower and nobody who does not exist is among them. Users count as active on the
	// day that they are made, follow, block, ask or change their profile, the day of a new
	// follow that enters them, and those of [SuggestionStore.MarkActive].
	//
	// Of each shard [PopularSample] users are looked at: those of the greatest class, of one
	// class the most recently active, then those of greater id. A class is the number of
	// digits of a number of followers, and the first two: an index on it is written a hundred
	// times less often than one on a large number itself. So what is listed is exact but for users with a tenth more or less followers than the
	// last ones, where a class has more users than that.
	Popular(ctx context.Context, since Day, limit int) ([]PopularUser, error)

	// MarkActive notes that users have been active on a day. It raises no version, and
	// makes nothing for who does not exist.
	MarkActive(ctx context.Context, users []UserID, day Day) error
}

// PopularSample is how many users of a shard Popular looks at.
const PopularSample = 2000

// PopularUser is a user with its followers.
type PopularUser struct {
	User      UserID
	Followers int64
}

// Day is a number of days since 1970-01-01, UTC.
type Day int32

// DayOf is the day of a time.
func DayOf(m Micros) Day { return Day(m / (24 * 3600 * 1_000_000)) }

// HandleSearcher finds handles.
type HandleSearcher interface {
	// SearchHandles lists handles that begin with a prefix, behind After, ascending, at
	// most so many, from all shards. A claim that never became a user is among them. What
	// is no handle by its form has none behind it.
	SearchHandles(ctx context.Context, prefix, after string, limit int) ([]HandleOwner, error)
}

// HandleOwner is a handle and whose it is.
type HandleOwner struct {
	Handle string
	User   UserID
}
