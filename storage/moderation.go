package storage

import "context"

// ModerationAction is what an operator has done.
type ModerationAction uint8

const (
	Suspended      ModerationAction = 1
	Reinstated     ModerationAction = 2
	PostRemoved    ModerationAction = 3
	CommentRemoved ModerationAction = 4
)

const (
	// Forever is the Until of a suspension without an end: the end of the year 9999.
	Forever Micros = 253_402_300_800e6 - 1

	MaxReasonLength = 500                   // characters
	MaxOperatorText = 2*MaxIdentityText + 1 // bytes: an issuer, a blank and a subject
)

// ModerationEntry is what an operator has done to a user, or to a post or a comment of one. Owner and At are its key.
type ModerationEntry struct {
	Owner  UserID // on whose shard it is: the author of the post that is concerned, or whose comment is; otherwise User
	At     Micros
	User   UserID // who is suspended or reinstated, or who has written the post or the comment
	Action ModerationAction
	By     string // who has done it: 1 to MaxOperatorText bytes
	Reason string // 1 to MaxReasonLength characters
	Until  Micros // of Suspended; otherwise 0
	Number int64  // of the post or the comment; otherwise 0
}

// Place is where the entry is in the log, which runs newest first: At and Owner.
func (e ModerationEntry) Place() Place { return Place{e.At, int64(e.Owner)} }

// Suspension is until when a user is suspended, and why. One whose time is over counts as none.
type Suspension struct {
	Until  Micros // 0: there is none
	Reason string
}

// ModerationQuery asks for a range of the moderation log, newest first.
type ModerationQuery struct {
	User  UserID // only what concerns the user; 0: all
	After Place  // only entries strictly behind it (older), unless zero
	Limit int    // how many at most, ≥ 1
}

// ModerationLookups lists entries in the order of their places. It asks every shard. Every query is Found.
var ModerationLookups = NewLookupKind[ModerationQuery, []ModerationEntry]("moderation", nil)

// ModerationStore keeps what operators do, in a log to which entries are only added. Entries outlive the posts, comments
// and users that they are about.
type ModerationStore interface {
	// Moderate does what an entry says and adds the entry to the log, in one transaction on the shard of Owner, or does
	// neither. It returns the entry as it is in the log: with the User of a comment, and with At later than the owner's last entry. The
	// change of the user has the At that was given: the log may be ahead of the clock.
	// Nothing changes if the user is suspended until the same time or, to be reinstated, is not suspended at At, and if there is no such
	// post or comment. A suspension leaves the [UserState] as it is, raises the user's version, and is among [StateChangeLookups].
	// Removing is what [PostWriter].DeletePost does, or [CommentWriter].DeleteComment by the post's author. [ErrUserUnknown] if
	// a user to be suspended or reinstated does not exist or is being deleted.
	Moderate(ctx context.Context, entry ModerationEntry) (added ModerationEntry, changed bool, err error)

	// RestoreModeration adds entries as they were elsewhere, for imports, and leaves posts and comments as they are. Without
	// an Err, each is Found, and the Value reports whether it was added: there may be one with its key. Afterwards the newest entry about each user who
	// exists says whether that user is suspended; such a change has the time at. Entries of later times get times just behind it, in their order.
	RestoreModeration(ctx context.Context, entries []ModerationEntry, at Micros) []Result[bool]
}
