package storage

import (
	"context"
	"strconv"
	"time"
)

// accountStore keeps what signing in and profiles need, and which users the identities of providers stand for.
type accountStore interface {
	// Register creates one user together with its handle, its counts and the hash of its password.
	// If the handle was claimed more than [kith/storage/judge.ClaimTTL] before CreatedAt for a user who was never created, or who was deleted,
	// see [kith/storage/judge.HandleRest], Register takes it over. [ErrHandleTaken], [ErrUserExists], [ErrIDUnusable].
	Register(ctx context.Context, user User, passwordHash string) error

	// SetPassword replaces the hash of a user and returns the password as it is afterwards.
	// [ErrPasswordChanged] if the stored hash is no longer Old, [ErrUserUnknown].
	SetPassword(ctx context.Context, id UserID, change PasswordChange) (Password, error)

	// UpdateProfile changes the fields that are given, sets UpdatedAt, raises the user's version,
	// and returns the user as it is afterwards. Nothing is written if all fields have these values. [ErrUserUnknown], [ErrAttributesTooLong].
	UpdateProfile(ctx context.Context, id UserID, change ProfileChange, at Micros) (user User, changed bool, err error)

	// LinkIdentity makes a valid identity stand for a user. Doing it again changes nothing. Whether
	// the user exists is not checked: a user who registers is linked first. A user may have several
	// identities; [Store].Erase removes them all. [ErrKeyTaken] if the identity stands for
	// another user. [ErrLimitReached] if the user has [MaxIdentities] other identities on the shard of
	// this one. The user's identities may be on several shards: callers that need the number of all of
	// them read [LinkLookups] first.
	LinkIdentity(ctx context.Context, identity Identity, user UserID, at Micros) error

	// UnlinkIdentity unlinks an identity from a user, and reports whether it stood for that user.
	// Afterwards it may be linked to another user.
	UnlinkIdentity(ctx context.Context, identity Identity, user UserID) (bool, error)

	// MarkActive records that users were active on a day. It raises no version, and creates nothing
	// for users who do not exist.
	MarkActive(ctx context.Context, users []UserID, day Day) error

	// See notes that a user has seen something up to a time. Nothing changes if it has seen more. [ErrUserUnknown].
	See(ctx context.Context, what Seen, upTo Micros) (changed bool, err error)
}

// PasswordLookups reads the passwords of users, each with its time as of one moment. A user without a
// password, such as an imported one, is Found with an empty Hash.
var PasswordLookups = NewKind[UserID, Password]("passwords", nil)

// Password is what is stored of a user's password.
type Password struct {
	Hash string // empty: there is none

	// ChangedAt is when the password was last changed with EndsTokens; 0: never. It rises with each
	// such change, and [StateChangeLookups] reports it.
	ChangedAt Micros
}

// PasswordChange replaces Old with New.
type PasswordChange struct {
	Old, New   string // hashes
	At         Micros
	EndsTokens bool // it is another password, not the same one hashed again
}

// edgeChanger writes what users do, as opposed to what has happened elsewhere (see [EdgeWriter]).
type edgeChanger interface {
	// ChangeEdges sets the types of edges that leave one user, on one of [Truths], in one short transaction on that user's shard.
	// However many changes there are, the transaction locks the counts, reads once, writes the rows once and the counts once.
	// Changes are judged one after another.
	//
	// If an edge's row already has the wanted type, it is left alone, so that it keeps its time and its position in lists; only
	// the Detail of a relation is changed. Otherwise its new time is the greater of At and the row's time plus 1. Ending an edge
	// that never existed writes nothing.
	//
	// A single change may fail with an error named below; the others go through. If the user has no counts or, on the sides of
	// items, is being deleted, all of them fail with [ErrUserUnknown].
	//
	// On the Forward side a follow, or a request for one, is refused with [ErrForbidden] if one of the two blocks the other: a
	// block is stored on both shards, so both directions are seen here. A block replaces either and cancels a
	// pending request From → To. When a follow ends, its mark is removed. A request leaves a follow as it is. [ErrLimitReached].
	//
	// On the Requests side the user is who asks, whoever acts, and the Type is what becomes of the request. A friend is a mutual
	// follow (seeds: weak and strong friends).
	//
	//   - [Pending] (by From) asks. If To has asked From, and To's request has not expired, the new one is accepted at once:
	//     From follows To. A pending request stays as it is.
	//   - [Accepted] (by To) makes From follow To. The follow To → From is written when the Inbox row is applied.
	//   - [Declined] (by To) ends the request; From may ask again after a pause.
	//   - [Cancelled] (by From) ends the request.
	//   - [Removed] (by From) ends the friendship: From no longer follows To. The follow To → From is ended when the Inbox row
	//     is applied.
	//
	// [ErrNoEdge] means that there is nothing to accept, decline or cancel, or no longer: the request has expired, or another
	// act came first. [ErrForbidden] means that one of the two blocks the other, or that the pause after a decline has not
	// passed. [ErrLimitReached].
	//
	// ChangeEdges does not check that the post of a favorite or the other end of a relation exists: callers have read it. No two
	// changes have the same end and item. [ErrLimitReached], [ErrForbidden], [ErrAttributesTooLong], and [ErrListUnknown] as a new
	// member of a list that there is not.
	ChangeEdges(ctx context.Context, side Side, user UserID, changes []EdgeChange, o ChangeOptions) []Result[Changed]

	// SetMark changes the mark on From → To. It returns the mark as it is afterwards, and whether
	// the call changed it. A change raises the version of From. A mark that is not special and has
	// neither a remark nor attributes is removed. [ErrNoEdge]; [ErrLimitReached] beyond [MaxSpecials];
	// [ErrAttributesTooLong].
	SetMark(ctx context.Context, pair Pair, change MarkChange) (mark EdgeMark, changed bool, err error)
}

// EdgeChange is what a user does towards another, or with an item: a post that it favorites or not, or an end of an edge of a
// declared kind.
type EdgeChange struct {
	To   UserID   // the other user, the post's author, or the other end
	Item int64    // the post's number, or the kind's
	Type EdgeType // of requests: one of their states; [Denied] is None unless the row is [Requested]
	Ends EdgeType // the type that None ends; rows of other types stay; 0 stands for [Following] and [Requested].
	// If it is [Requested], rows of other types stay whatever Type is: one accepts what still waits.
	At Micros // the clock, read once per request

	Message string       // of a [Pending] request, at most MaxMessageLength characters
	Detail  DetailChange // of a relation that is made, or is there
	IfDue   bool         // of [None]: only if the relation's EndsAt has come At
	With    bool         // only together with the change before it, whose error it shares
}

// ChangeOptions limit and extend changes. A limit of 0 means no limit.
type ChangeOptions struct {
	// MaxFollowing is how many users one user may follow: a follow beyond it gets
	// [ErrLimitReached], and so does a request beyond it of a user's follows and requests together.
	MaxFollowing int64
	// MaxBlocks is how many users one user may block: a block beyond it gets [ErrLimitReached].
	MaxBlocks int64

	// TTL is how long a request stays pending. An older request counts as none.
	TTL time.Duration
	// Pause is how long From may not ask again after a decline: [ErrForbidden].
	Pause time.Duration
	// MaxPending is how many requests of From may be pending: one more gets [ErrLimitReached].
	MaxPending int

	// MaxItems is how many edges of an item's kind may leave the user: one more gets [ErrLimitReached].
	MaxItems int64
	// Peace refuses a new edge that names an item with [ErrForbidden] if one of its two ends blocks the other.
	Peace bool

	// Inverse also writes the other side's rows and counts, with their consequences, in the same transaction if To is in
	// the same database.
	Inverse bool
}

// ValidFrom is the time since which requests are still pending.
func (o ChangeOptions) ValidFrom(at Micros) Micros { return at - Micros(o.TTL.Microseconds()) }

// DefaultRequestTTL is how long a request stays pending. A store needs the value that
// the gateways use, because it judges crossing requests by it.
const DefaultRequestTTL = 90 * 24 * time.Hour

// MaxMessageLength is the greatest length of a request's message, in characters.
const MaxMessageLength = 300

// Changed is the outcome of writing one edge.
type Changed struct {
	Row     Edge // as it is now, whoever wrote it; Type None and UpdateTime 0 if there is none
	Changed bool // whether this edge was written

	// Also is what followed from it (see [EdgeWriter]): forward rows, which have to be propagated to their other side. After
	// ChangeEdges, a pending request that a block has cancelled and, with [ChangeOptions.Inverse], the consequences on the other side.
	Also []Written

	// Of ChangeEdges:
	Side    Side // on which the row is
	Inverse bool // the Inverse side was written too
	Kept    bool // the edge was there already: only what is stored with it has changed
	Waited  bool // it was a request to follow until now
}

// Written lists all forward rows that the change has written, its own first.
func (c Changed) Written() []Written {
	if !c.Changed {
		return nil
	}
	return append([]Written{{Row: Row{c.Side, c.Row}, Inverse: c.Inverse}}, c.Also...)
}

// LogReader reads the relation_log of an engine that has no binlog. The log holds every change of a
// row in any table of edges, of a user and of a post, written in the transaction that made the change.
type LogReader interface {
	// ReadLog returns entries of one shard after a position, oldest first, at most limit. The
	// positions of a shard rise, with gaps; 0 is the beginning. [ErrLogPruned] means that entries
	// after the position have already been removed.
	ReadLog(ctx context.Context, shard int, after int64, limit int) ([]LogEntry, error)

	// PruneLog removes entries of one shard up to and including a position.
	PruneLog(ctx context.Context, shard int, upTo int64) error
}

// LogEntry is one change of a row.
type LogEntry struct {
	Position int64
	Row      // as it was written
}

// LogRow is what the log has of a post of which something has changed or, if its number is 0, of the user: a follow of the user by itself
// that ended at time 0, which there is not, with the number of the post as its item.
func (p PostID) LogRow() Row {
	return Row{Forward, Pair{p.Author, p.Author, p.Number}.Edge(None, 0)}
}

// LogRow is the same for a comment, at time 1.
func (c CommentID) LogRow() Row {
	return Row{Forward, Pair{c.Author, c.Author, c.Number}.Edge(None, 1)}
}

// IsEdge reports whether the entry is about an edge; if not, it is about a user, a post or a comment, see [PostID.LogRow].
func (e LogEntry) IsEdge() bool {
	return e.Row != e.Edge.Pair().PostID().LogRow() && e.Comments() == nil
}

// Comments is the comment that the entry is about, if it is.
func (e LogEntry) Comments() []CommentID {
	if id := (CommentID{e.Edge.From, e.Edge.Item}); e.Row == id.LogRow() {
		return []CommentID{id}
	}
	return nil
}

// At is the entry's position as text.
func (e LogEntry) At() string { return strconv.FormatInt(e.Position, 10) }

// Change is what the entry tells. Of an edge it has only the row.
func (e LogEntry) Change() (c Change) {
	switch {
	case e.Comments() != nil:
	case e.IsEdge():
		c.Rows = []Row{e.Row}
	case e.Edge.Item == 0:
		c.AddUser(e.Edge.From, Whole|Standing)
	default:
		c.AddPost(PostEdited, PostAt{PostID: e.Edge.Pair().PostID()})
	}
	return c
}

// Leaser hands out numbered slots, such as the machine ids of gateways. A slot has one owner at a
// time.
type Leaser interface {
	// Lease leases a slot of a kind, 0 … slots−1, until a time: the slot that the owner already
	// holds, or else a free one, or if there is none, one that has expired. [ErrNoLease] if all are taken.
	Lease(ctx context.Context, kind, owner string, slots int, now, until Micros) (int, error)

	// Release gives the owner's slot back, if the lease ends at a time, or, if that is 0, whenever it ends. If the owner holds no
	// such slot, that is no error.
	Release(ctx context.Context, kind, owner string, until Micros) error

	// Holders returns until when each owner has a lease of a kind. Leases that have expired, and have been neither released nor
	// taken, are among them.
	Holders(ctx context.Context, kind string) (map[string]Micros, error)
}
