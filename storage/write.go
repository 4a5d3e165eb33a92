package storage

import "context"

// AccountStore keeps what signing in and profiles need.
type AccountStore interface {
	// Register makes one user together with its handle, its counts and the hash of
	// its password. A handle that was claimed more than [ClaimTTL] ago by somebody
	// who never became a user is taken over. [ErrHandleTaken], [ErrUserExists].
	Register(ctx context.Context, user User, passwordHash string) error

	// Passwords reads the passwords of users, each with its time as of one moment. One
	// that has no password, such as an imported one, is Found with an empty Hash.
	Passwords(ctx context.Context, ids []UserID) []Result[Password]

	// SetPassword replaces the hash of a user and returns the password as it is then.
	// [ErrPasswordChanged] where the hash is not Old any more, [ErrUserUnknown].
	SetPassword(ctx context.Context, id UserID, change PasswordChange) (Password, error)

	// UpdateProfile changes the texts that are given, sets UpdatedAt, raises the
	// user's version, and returns the user as it is then. [ErrUserUnknown].
	UpdateProfile(ctx context.Context, id UserID, change ProfileChange, at Micros) (User, error)
}

// ClaimTTL is how old a claim on a handle must be, in microseconds, before a claim
// without a user may be taken over.
const ClaimTTL Micros = 60_000_000

// Password is what is kept of a user's password.
type Password struct {
	Hash string // empty: there is none

	// ChangedAt is when it was last changed with EndsTokens; 0: never. It rises with each
	// such change, and is among [StateStore.StateChanges].
	ChangedAt Micros
}

// PasswordChange replaces Old by New.
type PasswordChange struct {
	Old, New   string // hashes
	At         Micros
	EndsTokens bool // it is another password, not the same one hashed anew
}

// ProfileChange holds the new texts; nil leaves one as it is.
type ProfileChange struct {
	Name, Bio, AvatarURL *string

	FollowingsVisibility, FollowersVisibility *Visibility
	Undiscoverable                            *bool
}

// EdgeChanger writes what users do, as opposed to what has happened elsewhere
// (see [EdgeWriter]).
type EdgeChanger interface {
	// ChangeEdges sets the types of edges that leave one user, on the Forward side,
	// in one short transaction on that user's shard: the counts' lock, one read, one
	// write of the rows, one of the counts, however many changes there are.
	//
	// An edge whose row has the wanted type already is left alone, so that it keeps
	// its time and its place in lists. Otherwise its new time is the greater of At
	// and the row's time plus 1. Ending an edge that never was writes nothing.
	// Changes that name the same user are judged one after another.
	//
	// A follow is refused with [ErrForbidden] where one of the two blocks the other: a
	// block lies on both shards, so both are seen here. A block takes a follow's place
	// and cancels a pending request From → To. A follow that ends takes its mark along.
	//
	// The Err of a single change may be [ErrLimitReached] or [ErrForbidden]; the others go through.
	// [ErrUserUnknown] is the Err of all when the user has no counts.
	ChangeEdges(ctx context.Context, from UserID, changes []EdgeChange, o ChangeOptions) []Result[Changed]
}

// EdgeChange is what a user does towards another.
type EdgeChange struct {
	To   UserID
	Type EdgeType
	Ends EdgeType // where Type is [None]: which type it ends, others stay; 0 stands for [Following]
	At   Micros   // the clock, read once for a request
}

// ChangeOptions bound and widen a change.
type ChangeOptions struct {
	// MaxFollowing is how many users one may follow: a follow beyond it gets
	// [ErrLimitReached]. 0 means no limit.
	MaxFollowing int64

	// Inverse writes the Inverse rows and follower counts in the same transaction
	// where To lies in the same database.
	Inverse bool
}

// Changed tells what became of one change.
type Changed struct {
	Row     Edge // as it is now; Type None and UpdateTime 0 where there is none
	Changed bool
	Inverse bool // the Inverse side was written, too

	// Also is what followed from it: a pending request that a block has cancelled, and
	// with [ChangeOptions.Inverse] what [EdgeWriter] says of the other side.
	Also []Written
}

// Written lists all forward rows that the change has written, its own first.
func (c Changed) Written() []Written {
	if !c.Changed {
		return nil
	}
	return append([]Written{{Row: Row{Forward, c.Row}, Inverse: c.Inverse}}, c.Also...)
}

// LogReader reads the relation_log of an engine that has no binlog: every change
// of an edge's row, in any of the tables, written in the transaction that made it.
type LogReader interface {
	// ReadLog returns entries of one shard behind a position, oldest first, at most
	// so many. Positions of a shard rise, but not without gaps; 0 is the beginning.
	// [ErrLogPruned] means that entries behind the position are gone already.
	ReadLog(ctx context.Context, shard int, after int64, limit int) ([]LogEntry, error)

	// PruneLog removes entries of one shard up to and including a position.
	PruneLog(ctx context.Context, shard int, upTo int64) error
}

// LogEntry is one change of a row.
type LogEntry struct {
	Position int64
	Side     Side
	Edge     Edge // the row as it was written
}

// Leaser hands out numbered slots, each to one owner at a time, such as the
// machine ids of gateways.
type Leaser interface {
	// Lease takes a slot of a kind, 0 … slots−1, until a time: the one that the owner
	// holds already, or a free or expired one. [ErrNoLease] when all are taken.
	Lease(ctx context.Context, kind, owner string, slots int, now, until Micros) (int, error)

	// Release gives the owner's slot back. One that it does not hold is no error.
	Release(ctx context.Context, kind, owner string) error

	// Holders counts the slots of a kind whose leases have not ended.
	Holders(ctx context.Context, kind string, now Micros) (int, error)
}
