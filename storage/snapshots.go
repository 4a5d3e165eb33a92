package storage

import "context"

// Snapshots reads what caches keep. Each answer is as of one moment, with the version
// that the owner's counts had then ([Counts].Version), so that of two answers the newer
// is known.
type Snapshots interface {
	ProfileReader

	// Lists reads whole lists of the Forward or the Inverse side. Every query is Found.
	Lists(ctx context.Context, side Side, queries []ListQuery) []Result[List]
}

// ProfileReader reads users together with their counts, as of one moment.
type ProfileReader interface {
	// Profiles reads users and their counts. A user is Found when either of the two is there.
	Profiles(ctx context.Context, ids []UserID) []Result[Profile]
}

// Profile is a user with its counts, at one moment.
type Profile struct {
	User    User
	Exists  bool // there is such a user; false where only edges are known, or nothing
	Counts  Counts
	Counted bool // there is a row of counts
}

// ListQuery asks for all that a side keeps of one owner. It is comparable.
type ListQuery struct {
	Owner UserID
	// Longest is how long a list may be, by its owner's count: a longer one is not read.
	Longest int
	// EndedSince asks for tombstones, too, that are at least so new.
	EndedSince Micros
}

// List is all that a side keeps of one owner, at one moment.
type List struct {
	Version int64  // of the owner's counts; 0 where it has none
	Long    bool   // the list is longer than was asked for: Edges are empty
	Edges   []Edge // follows, blocks and the tombstones asked for, by ascending peer
}

// Packer keeps long lists packed beside their rows, so that [Snapshots.Lists] reads them in
// less time. What is answered is the same.
type Packer interface {
	// Pack sees to it that an owner's list of the Forward or the Inverse side is packed,
	// and that what has changed since does not become too much. It does nothing for a list that is
	// not worth it, or while somebody else is at it. It may read the whole list. It can be
	// broken off and repeated at any point, while others read and write.
	Pack(ctx context.Context, side Side, owner UserID) error
}

// PackedReader reads lists that are kept packed. A store may keep none.
type PackedReader interface {
	// PackedNeighbours is [EdgeReader].Neighbours of the Forward or the Inverse side for
	// lists that are kept packed. Not Found, without an Err, is a list that is not: having been asked
	// for it, the store sees to it in its own time, if the list is worth it. A list of a million
	// takes tens of milliseconds and 8 MB, so callers look at the counts first.
	PackedNeighbours(ctx context.Context, side Side, owners []UserID) []Result[[]UserID]
}

// UserLister lists all users.
type UserLister interface {
	// UserIDsAfter lists users of one shard with greater ids, ascending, at most so many.
	UserIDsAfter(ctx context.Context, shard int, after UserID, limit int) ([]UserID, error)
}
