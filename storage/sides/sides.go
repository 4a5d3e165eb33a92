// Package sides is the contract by which the two sides of all edges are compared, and made to agree again.
package sides

import (
	"context"

	"kith/storage"
)

// Comparer compares the two sides of all edges, mostly inside the databases, one group of edges at
// a time, see [Cut].
type Comparer interface {
	// Shards is the number of shards. It may grow.
	Shards() int

	// Served reports which buckets a shard has now.
	Served(ctx context.Context, shard int) (storage.Served, error)

	// NextOwner returns the id of the users-th user after another on a shard, in ascending order,
	// so that a scan can be cut into ranges; false if there are fewer users.
	NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (storage.UserID, bool, error)

	// OwnerOfRow returns the owner of the rows-th row behind an owner on a side of a shard, in the order of owners, false if
	// there are fewer rows. Unlike NextOwner, it finds owners who are no users, too.
	OwnerOfRow(ctx context.Context, side storage.Side, shard int, after storage.UserID, rows int) (storage.UserID, bool, error)

	// Digests returns the digest of each group of a cut that has rows on a side of a shard, for the
	// owners in a range. It covers the groups of the given classes, or of all if classes is nil.
	// Digests of ranges and of shards can be added.
	Digests(ctx context.Context, side storage.Side, shard int, owners OwnerRange, cut Cut, classes storage.Choice) (map[int]Digest, error)

	// OwnerDigests returns the digest of each owner in a range that has rows on a side of a shard. Unlike Digests, it leaves out all rows of
	// type [storage.None].
	OwnerDigests(ctx context.Context, side storage.Side, shard int, owners OwnerRange) (map[storage.UserID]Digest, error)

	// GroupRows reads the rows of some groups of a cut on a shard and side, for the owners in a
	// range, in no particular order.
	GroupRows(ctx context.Context, side storage.Side, shard int, owners OwnerRange, cut Cut, groups storage.Choice, row func(storage.Edge)) error

	// WrongCounts returns the users in a range whose count on a side differs from the number of
	// their edges of type [storage.Following] there, together with that number. Users who have no counts at
	// all are included. On the FavoriteInbox side, an edge counts only if its post exists and has
	// not been deleted.
	WrongCounts(ctx context.Context, side storage.Side, shard int, owners OwnerRange) ([]WrongCount, error)

	// WrongItemCounts returns the items of owners in a range whose number of edges differs from their edges of type 1: on the
	// FavoriteInbox side posts, deleted ones among them, on the Relations and RelationInbox sides kinds. They come by owner,
	// then by number.
	WrongItemCounts(ctx context.Context, side storage.Side, shard int, owners OwnerRange) ([]WrongCount, error)

	// WrongFriends returns the users in a range, ascending, whose friend count differs from the
	// number of users they follow who follow them back. Users who have no counts at all are not
	// included.
	WrongFriends(ctx context.Context, shard int, owners OwnerRange) ([]WrongCount, error)

	// ForbiddenFollows returns the follows of users in a range whose other end blocks the user, as
	// seen by one shard: edges of type [storage.Following] or [storage.Requested] on the Forward side for which the
	// Inverse side has an edge of type [storage.Blocking] in the other direction. They come by owner, then by peer.
	// Owners without counts are skipped. A user with the id of a deleted one or of a thing comes as a pair with itself.
	ForbiddenFollows(ctx context.Context, shard int, owners OwnerRange) ([]storage.Pair, error)
}

// OwnerRange is the owners with After < id ≤ UpTo, of some buckets.
type OwnerRange struct {
	After, UpTo storage.UserID
	Buckets     storage.Choice // nil: every owner who has rows
}

// WrongCount is a count that is not what it should be.
type WrongCount struct {
	User      storage.UserID
	Item      int64 // of WrongItemCounts
	Have, Are int64
}

// Repairer makes the inverse tables match the forward ones.
type Repairer interface {
	// RepairInverse writes inverse rows, also over newer ones, if they are still as observed. It
	// updates the counts, and writes what follows from the rows (see [storage.EdgeWriter]). If a block is
	// already as wanted, RepairInverse writes again what follows from it. Changed reports that the row was as observed, and is now as
	// wanted; the Row is not returned.
	RepairInverse(ctx context.Context, repairs []Repair) []storage.Result[storage.Changed]

	// Recount sets a user's count on a side to the number of its edges of type
	// [storage.Following] there, see [Comparer].WrongCounts.
	Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool]

	// RecountItems sets the counts of items, each with its owner, to what [Comparer].WrongItemCounts expects.
	RecountItems(ctx context.Context, side storage.Side, items []storage.PostID) []storage.Result[bool]

	// RecountFriends sets a user's friend count to the number of users whom it follows and who
	// follow it.
	RecountFriends(ctx context.Context, users []storage.UserID) []storage.Result[bool]
}

// Repair is one inverse row to write.
type Repair struct {
	Side storage.Side // either table of the pair: the zero value means [storage.Inverse], too
	Pair storage.Pair

	// Observed is the inverse row as it was read; type [storage.None] at time 0 means no row.
	Observed storage.Edge

	// Want is the forward row. If there is none, Want is a tombstone at time 0, so that any event
	// is newer.
	Want storage.Edge
}
