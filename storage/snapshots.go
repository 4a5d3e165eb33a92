package storage

import "context"

// Kinds of look-ups of what caches keep. Each answer is as of one moment, and carries the version that
// the owner's counts had then ([Counts].Version), so that the newer of two answers is known.
var (
	// ProfileLookups reads users together with their counts. A user is Found if either of the two exists.
	ProfileLookups = NewLookupKind[UserID, Profile]("profiles", nil)

	// SnapshotLookups reads whole lists. Every query is Found.
	SnapshotLookups = bySide[ListQuery, List](Sides[:2], "snapshots", func(_ Side, q ListQuery) UserID { return q.Owner })

	// PackedLookups is [NeighbourLookups] for lists that
	// are kept packed. A store may keep none. If a list is not packed, the result has neither Found nor Err; the store may
	// then pack it in the background, if it is worth it. A list of a million takes tens of
	// milliseconds and 8 MB, so callers check the counts first.
	PackedLookups = bySide[UserID, []UserID](Sides[:], "packed", sideUser)
)

// Profile is a user with its counts, at one moment.
type Profile struct {
	User    User
	Exists  bool // false if only edges are known of the user, or nothing
	Counts  Counts
	Counted bool // there is a row of counts
}

// ListQuery asks for everything that a side keeps of one owner. It is comparable.
type ListQuery struct {
	Owner UserID
	// Longest is the length, by the owner's count, beyond which a list is not read.
	Longest int
	// EndedSince also asks for tombstones that are at least this new.
	EndedSince Micros
}

// List is everything that a side keeps of one owner, at one moment.
type List struct {
	Version int64  // of the owner's counts; 0 if it has none
	Long    bool   // the list is longer than was asked for: Edges is empty
	Edges   []Edge // follows, blocks and the tombstones asked for, by ascending peer
}

// Packer keeps long lists packed beside their rows, so that [SnapshotLookups] reads them faster.
// The answers are the same.
type Packer interface {
	// Pack packs an owner's list of the Forward or the Inverse side, or packs it again if too much
	// has changed since. It does nothing if the list is not worth it, or while another packer works
	// on the list. It may read the whole list. It can be interrupted and repeated at any point,
	// while others read and write.
	Pack(ctx context.Context, side Side, owner UserID) error
}

// Rank is the place of a user among those of a shard: by the number of followers, roughly, then by the last day on which the user was
// active, then by the id, each descending.
type Rank struct {
	Class     int // of the number of followers: its digits times 100, plus its first two digits
	ActiveDay Day
	User      UserID
}

// Ranker lists users by their ranks.
type Ranker interface {
	// Ranked lists users of one shard who come behind a rank, at most limit. The zero rank comes before all.
	Ranked(ctx context.Context, shard int, after Rank, limit int) ([]Rank, error)

	Shards() int
}
