package storage

import "context"

// UserState says whether a user is visible.
type UserState uint8

const (
	Active      UserState = 0
	Deactivated UserState = 1 // hidden, at its own request, until it comes back
	Deleting    UserState = 2 // permanently hidden; its edges are being removed
	Deleted     UserState = 3 // nothing is left
)

// StateChange is the last change of a user's state, suspension or password.
type StateChange struct {
	At             Micros
	User           UserID
	State          UserState
	SuspendedUntil Micros // [UserStanding.Until]
	PasswordAt     Micros // [Password.ChangedAt]
}

// Kinds of look-ups of the states of users, on their own shards.
var (
	// StateLookups reads whether users are visible and may act. Every user is Found, whether it exists or not: a user
	// without an entry is Active.
	StateLookups = NewKind[UserID, UserStanding]("states", nil)

	// StateChangeLookups lists the last change of every user of a shard whose state, suspension or password (see
	// [Password.ChangedAt]) has ever changed. A suspension that ends by its time is no change. Times are those of the gateways' clocks.
	// They come by At, then by User; of After only these two count. To find what was written late, read again from somewhat before the
	// last one. Every query is Found.
	StateChangeLookups = NewKind[ShardQuery[StateChange], []StateChange]("states.changes", nil)
)

// UserStanding is the state of a user, and its last suspension, unless it has been reinstated since. One whose time is over counts as none.
type UserStanding struct {
	State  UserState
	Until  Micros // of the suspension; 0: there is none
	Reason string
}

// stateStore keeps the states of users, on their own shards, and what operators do, in a log to which entries are only added.
// Entries outlive the posts, comments and users that they are about.
type stateStore interface {
	// Shards is the number of shards.
	Shards() int
	// Served reports what a shard has.
	Served(ctx context.Context, shard int) (Served, error)

	// SetState changes a user's state at a time, and raises its version. Active and Deactivated
	// lead to each other and to Deleting; no state leads back from Deleting: [ErrForbidden]. But a user who was made with the id of a
	// deleted one goes from Deleted to Deleting. If the
	// user already has the state, nothing changes. The times of a user's changes rise: if At is not
	// later than the last one, the time is the last one plus 1. [ErrUserUnknown].
	SetState(ctx context.Context, user UserID, state UserState, at Micros) (changed bool, err error)

	// Erase is the last step of a deletion, for a user in state Deleting whose edges have been
	// ended. It removes the handle, the identities, the user, its counts, marks and messages, its posts with all
	// comments on them, and its comments on posts of others, and sets Deleted. It can be called again, also after a crash
	// in between; then it removes identities and comments that came late. Other late writes bring back nothing that could be seen.
	// [ErrForbidden] for a user in another state.
	Erase(ctx context.Context, user UserID, at Micros) error

	// EndEdges is a step of a deletion. It turns rows of a user, which [RowLookups] has listed,
	// into tombstones, and their other sides, too, whatever is there. The row of the other end is written
	// first, or in the same transaction if it is on the user's shard. After a crash, the user's remaining
	// rows are therefore the list of what is still to be done.
	//
	// Both sides get the same time: at or, if a row is not older, that row's time plus 1, or that of a newer tombstone that is there. If Found is set,
	// the edge has ended on both sides, and the Value is the tombstone. If neither Found nor Err is set,
	// the user's row has changed meanwhile and is left alone: it has to be listed again. If Found is not
	// set, a Value whose time is not 0 is the row of the other end, which has been written. If the shard
	// of the other end does not answer, only that edge has an Err.
	EndEdges(ctx context.Context, user UserID, rows []Row, at Micros) []Result[Edge]

	// Moderate does what an entry says and adds the entry to the log, in one transaction on the shard of Owner, or does
	// neither. It returns the entry as it is in the log: with the User of a comment, and with At later than the owner's last entry. The
	// change of the user has the At that was given: the log may be ahead of the clock.
	// Nothing changes if the user is suspended until the same time or, to be reinstated, is not suspended at At, and if there is no such
	// post or comment. A suspension leaves the [UserState] as it is, raises the user's version, and is among [StateChangeLookups].
	// A report changes nothing else, and adds no entry if Owner has reported the same within 30 days; whether what is reported exists, is not looked at.
	// Removing is what [Store].DeletePost does, or [Store].DeleteComment by the post's author. [ErrUserUnknown] if
	// a user to be suspended or reinstated does not exist or is being deleted, or one who reports does not exist.
	Moderate(ctx context.Context, entry ModerationEntry) (added ModerationEntry, changed bool, err error)
}

// Served is what a shard has at one moment.
type Served struct {
	Epoch   int64  // rises with every change of what follows
	Life    int64  // rises when the shard was restored from a backup
	Buckets Choice // whose rows the shard has to read
	Others  bool   // whether it may hold rows of other buckets, which are on their way from or to another shard
}
