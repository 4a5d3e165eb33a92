package storage

import "context"

// Comparer lets the two sides of all edges be compared mostly inside the databases.
//
// Edges fall into groups, by the bucket of From and the shard of To. A group lies on
// one shard of either side: that of its bucket on the Forward side, that of To on the
// Inverse side.
type Comparer interface {
	// Shards is the number of shards.
	Shards() int

	// NextOwner returns the id of the so-many-th user behind another on a shard, in
	// ascending order, to cut a scan into stretches; false when there are fewer.
	NextOwner(ctx context.Context, shard int, after UserID, users int) (UserID, bool, error)

	// Digests returns the digest of each group of which a shard has rows on a side,
	// over the owners in a range. Digests of ranges add up.
	Digests(ctx context.Context, side Side, shard int, owners OwnerRange) (map[Group]Digest, error)

	// GroupRows reads the rows of some groups on a shard and side, over the owners in a
	// range, in no order.
	GroupRows(ctx context.Context, side Side, shard int, owners OwnerRange, groups map[Group]bool, row func(Edge)) error

	// WrongCounts returns users in a range whose count on a side is not the number of
	// their edges of type [Following] there, with the latter. Users whose counts are
	// missing altogether are among them.
	WrongCounts(ctx context.Context, side Side, shard int, owners OwnerRange) ([]WrongCount, error)
}

// OwnerRange is the owners with After < id ≤ UpTo.
type OwnerRange struct{ After, UpTo UserID }

// Group is a class of edges, see [Comparer].
type Group struct {
	Bucket  int // of From
	ToShard int // of To
}

// Digest stands for a multitude of rows: equal rows have equal digests, and it is as
// good as impossible that others have. It sees every field of a row, and also damage
// that comes in pairs, such as two rows that have swapped their times: it adds up two
// checksums of each row, over its fields in two orders. (Their exclusive or would
// not: CRCs are linear.)
//
// A tombstone at time 0 counts as no row; see [Repairer].
type Digest struct {
	Rows       int64
	SumA, SumB uint64
}

// Plus adds digests of disjoint sets of rows.
func (d Digest) Plus(e Digest) Digest {
	return Digest{d.Rows + e.Rows, d.SumA + e.SumA, d.SumB + e.SumB}
}

// WrongCount is a count that is not what it should be.
type WrongCount struct {
	User      UserID
	Have, Are int64
}

// Repairer makes the Inverse side what the Forward side is.
type Repairer interface {
	// RepairInverse writes inverse rows, also over newer ones, with the counts, if they
	// are still as they were observed. The Value tells whether that was so.
	RepairInverse(ctx context.Context, repairs []Repair) []Result[bool]

	// Recount sets a user's count on a side to the number of its edges of type
	// [Following] there.
	Recount(ctx context.Context, side Side, users []UserID) []Result[bool]
}

// Repair is one inverse row to be written.
type Repair struct {
	Pair Pair

	// Observed is the inverse row as it was read; type [None] at time 0 is no row.
	Observed Edge

	// Want is the forward row. Where there is none, it is a tombstone at time 0, which
	// any event will be newer than.
	Want Edge
}
