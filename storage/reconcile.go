package storage

import "context"

// Comparer lets the two sides of all edges be compared mostly inside the databases.
// What edges it compares at once are those of a group, see [Cut].
type Comparer interface {
	// Shards is the number of shards.
	Shards() int

	// NextOwner returns the id of the so-many-th user behind another on a shard, in
	// ascending order, to cut a scan into stretches; false when there are fewer.
	NextOwner(ctx context.Context, shard int, after UserID, users int) (UserID, bool, error)

	// Digests returns the digest of each group of a cut of which a shard has rows on a
	// side, over the owners in a range: of the groups in some classes, or, where that
	// is nil, in all. Digests of ranges and of shards add up.
	Digests(ctx context.Context, side Side, shard int, owners OwnerRange, cut Cut, classes Choice) (map[int]Digest, error)

	// GroupRows reads the rows of some groups of a cut on a shard and side, over the
	// owners in a range, in no order.
	GroupRows(ctx context.Context, side Side, shard int, owners OwnerRange, cut Cut, groups Choice, row func(Edge)) error

	// WrongCounts returns users in a range whose count on a side is not the number of
	// their edges of type [Following] there, with the latter. Users whose counts are
	// missing altogether are among them.
	WrongCounts(ctx context.Context, side Side, shard int, owners OwnerRange) ([]WrongCount, error)

	// WrongFriends returns users in a range, ascending, whose count of friends is not the
	// number of those who follow them back. Users whose counts are missing altogether
	// are not among them.
	WrongFriends(ctx context.Context, shard int, owners OwnerRange) ([]WrongCount, error)

	// ForbiddenFollows returns the follows of users in a range whose other end blocks the
	// user, as one shard has it: edges of type [Following] on the Forward side, with one of
	// type [Blocking] the other way on the Inverse side. By owner, then by peer. Owners who
	// have no counts are not looked at.
	ForbiddenFollows(ctx context.Context, shard int, owners OwnerRange) ([]Pair, error)
}

// OwnerRange is the owners with After < id ≤ UpTo.
type OwnerRange struct{ After, UpTo UserID }

// WrongCount is a count that is not what it should be.
type WrongCount struct {
	User      UserID
	Have, Are int64
}

// Repairer makes the inverse tables what the forward ones are.
type Repairer interface {
	// RepairInverse writes inverse rows, also over newer ones, with the counts and what
	// follows from them (see [EdgeWriter]), if they are still as they were observed. A
	// block that is there as it is wanted does what follows from it again.
	RepairInverse(ctx context.Context, repairs []Repair) []Result[Repaired]

	// Recount sets a user's count on a side to the number of its edges of type
	// [Following] there.
	Recount(ctx context.Context, side Side, users []UserID) []Result[bool]

	// RecountFriends sets a user's count of friends to the number of those whom it
	// follows and who follow it.
	RecountFriends(ctx context.Context, users []UserID) []Result[bool]
}

// Repair is one inverse row to be written.
type Repair struct {
	Side Side // of the two tables, either: the zero value means [Inverse], too
	Pair Pair

	// Observed is the inverse row as it was read; type [None] at time 0 is no row.
	Observed Edge

	// Want is the forward row. Where there is none, it is a tombstone at time 0, which
	// any event will be newer than.
	Want Edge
}

// Repaired tells what became of a repair.
type Repaired struct {
	Done bool      // the row was still as it was observed, and is now as it was wanted
	Also []Written // forward rows that followed from it, to be carried to their other side
}
