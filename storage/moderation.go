package storage

// ModerationAction is what an operator has done, or a user has reported.
type ModerationAction uint8

const (
	Suspended      ModerationAction = 1
	Reinstated     ModerationAction = 2
	PostRemoved    ModerationAction = 3
	CommentRemoved ModerationAction = 4
	UserReported   ModerationAction = 5
	PostReported   ModerationAction = 6
)

// HasNumber reports whether entries with the action are about a post or a comment.
func (a ModerationAction) HasNumber() bool {
	return a == PostRemoved || a == CommentRemoved || a == PostReported
}

const (
	// Forever is the Until of a suspension without an end: the end of the year 9999.
	Forever Micros = 253_402_300_800e6 - 1

	MaxReasonLength = 500 // characters
)

// ModerationEntry is what an operator has done to a user, or to a post or a comment of one, or what a user has reported. Owner and At are its key.
type ModerationEntry struct {
	Owner  UserID // on whose shard it is: the author of the post that is concerned, or whose comment is; who has reported; otherwise User
	At     Micros
	User   UserID // the user who is suspended, reinstated or reported, or the author of the post or the comment
	Action ModerationAction
	By     string // who has done it: an issuer, a blank and a subject; of a report, Owner
	Reason string // 1 to MaxReasonLength characters
	Until  Micros // of Suspended; otherwise 0
	Number int64  // of the post or the comment; otherwise 0
}

// Place is where the entry is in the log, which runs newest first: At and Owner.
func (e ModerationEntry) Place() Place { return Place{e.At, int64(e.Owner)} }

// ModerationLookups lists entries that concern a user, or all if the query names none, in the order of their places. It asks every
// shard. Every query is Found.
var ModerationLookups = NewKind[PlaceQuery, []ModerationEntry]("moderation", nil)
