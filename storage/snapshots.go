package storage

// Kinds of look-ups of what caches keep. Each answer is as of one moment, and carries the version that
// the owner's counts had then ([Counts].Version), so that the newer of two answers is known.
var (
	// ProfileLookups reads users together with their counts. A user is Found if either of the two exists.
	ProfileLookups = NewKind[UserID, Profile]("profiles", nil)

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
