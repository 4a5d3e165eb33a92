// Package storage is the contract between Kith and whatever keeps its graph.
//
// A store holds users and the directed edges between them. Every edge is kept twice: in
// `following`, sharded by the user it leaves (the source of truth), and in `follower`, sharded by
// the user it enters. Readers ask one Side or the other, always in batches; an engine turns a batch
// into one statement per shard.
//
// The interfaces are small and split by role. [Store] is what the program opens; everything above
// it should ask for the smallest interface it needs.
//
// Four parts of the contract are packages of their own: [kith/storage/finding] (searches and the popular), [kith/storage/reaction] (what
// others have done), [kith/storage/sides] (comparing and repairing) and [kith/storage/contents] (exports).
package storage

import "context"

// A Result answers one key of a batched look-up. A look-up returns exactly one Result for each key,
// at the key's index. If a key occurs twice, it is answered twice.
//
// Found reports whether the row exists. Err is set if the shard that owns the key could not answer
// (see [ErrUnavailable]), or if the context ended first; other keys of the same batch are not
// affected. If Err is set, Found is false, and a write has changed nothing for that key.
type Result[T any] struct {
	Value T
	Found bool
	Err   error
}

// Kinds of look-ups of users and edges. Others stand beside their types.
//
// The owner of an edge is the user whose shard holds it on the given side: From
// on the [Forward] side, To on the [Inverse] side. The other end is its peer.
var (
	// UserLookups reads users by id.
	UserLookups = NewKind[UserID, User]("users", nil)

	// HandleLookups resolves handles, which must be in their folded (lower-case) form. A malformed handle
	// is not found, and does not affect the others. The user may lack it, or be gone: the handle is only claimed for it.
	HandleLookups = NewKind[string, UserID]("handles", nil)

	// CountLookups reads the counts of users by id: how many edges of type [Following] leave and enter them, and more. They are stored
	// on the user's own shard and updated by every write; they are never computed by counting.
	CountLookups = NewKind[UserID, Counts]("counts", nil)

	// EdgeLookups reads single edges. A tombstone (type [None]) is Found like any other row: callers must
	// check Type. A cache may say that there is none of a request or a favorite instead.
	EdgeLookups = bySide[Pair, Edge](AllSides[:], "edges", Side.Owner)

	// PageLookups reads a range of each owner's list: the edges of one type, newest first. See
	// [PageQuery] for bounds and order. Every query is Found. Nobody asks for them of the Favorites side: see [FavoritePageLookups].
	PageLookups = bySide[PageQuery, []Edge](AllSides[:], "pages", func(_ Side, q PageQuery) UserID { return q.Owner })

	// NeighbourLookups reads the whole list of each owner: the peers of its edges of type [Following], in
	// ascending order of id. Callers check the length with [CountLookups] first. Every owner
	// is Found.
	NeighbourLookups = bySide[UserID, []UserID](Sides[:], "neighbours", sideUser)

	// RowLookups reads a range of each owner's rows of every type, without tombstones unless they are asked for, in ascending
	// order of the peer's id. The queries may be of several sides. Every query is Found.
	RowLookups = NewKind[RowsQuery, []Edge]("rows", func(q RowsQuery) (Side, UserID) { return q.Side, q.Owner })
)

// ShardAnswerer answers bundles, and says how many shards can be asked for what is on them.
type ShardAnswerer interface {
	Answerer

	// Shards is the number of shards. It may grow.
	Shards() int
}

// ShardQuery asks for what comes behind something on one shard, in the order of the kind. The zero value is before all.
type ShardQuery[P comparable] struct {
	Shard int // its ordinal
	After P
	Until Micros // of kinds in the order of time: where the list ends
	Limit int    // how many at most, ≥ 1
}

// UserIDLookups lists the ids of users by shard. Every query is Found.
var UserIDLookups = NewKind[ShardQuery[UserID], []UserID]("users.after", nil)

// IsEmpty reports whether a store holds no user at all.
func IsEmpty(ctx context.Context, s ShardAnswerer) (bool, error) {
	for shard := range s.Shards() {
		if some, err := UserIDLookups.Get(ctx, s, ShardQuery[UserID]{Shard: shard, Limit: 1}); err != nil || len(some) > 0 {
			return false, err
		}
	}
	return true, nil
}

// EdgeWriter writes edges, one side at a time.
type EdgeWriter interface {
	// Apply writes edges to one side, each only if the rule allows it, and updates the counts. The
	// edges of one shard are written in one transaction: all of them or, with the same Err on each,
	// none. If several edges name the same pair, each is judged after the ones before it.
	//
	// Without an Err, an edge is Found, and its Row is the row as it is after the edge was judged.
	// Apply takes an edge as it is: a newer edge is written even if its type is the row's.
	//
	// On the Forward side Apply changes following_count of From, on the Inverse side follower_count
	// of To, by exactly the difference between the old type and the new one. It raises the version
	// of every owner whose edge it changed. Owners without counts get them. Applying the same edges
	// again, late or out of order, changes nothing more. On every side, Apply also updates
	// friend_count of the owners, and when it ends a follow, it removes the mark of that follow.
	//
	// Four rows hold all that two users are to each other, and the shard of either user has them:
	// the owner's follow or block, the peer's, and the request of each. Some edges therefore change
	// other rows in the same transaction. Also lists the rows changed:
	//
	//   - Forward: [Following] and [Requested] are not written if the peer blocks the owner. [Blocking]
	//     cancels the owner's pending request.
	//   - Inverse: [Blocking] by the peer ends the owner's follow or request for one, however new, and
	//     cancels the owner's pending request.
	//   - Inbox: [Accepted] makes the owner follow the peer, unless one blocks the other. [Pending]
	//     and [Accepted] accept the owner's own pending request if the two are no further apart
	//     than the requests' time to live: requests that cross accept each other. [Removed] ends
	//     the owner's follow. A follow that is newer than the edge stays, and a follow that has
	//     been ended since stays ended.
	//
	// On the Favorites side Apply changes the number of favorites of From. On the FavoriteInbox side
	// it changes the number of favorites of the post, raises the post's version and, unless the post
	// has been deleted, changes how often To's posts have been favorited. A favorite of a post that
	// the store does not know is written, and counts only for From. Nothing follows from favorites.
	//
	// A row changed in this way gets the time of the edge or, if the row is not older than that,
	// its own time plus 1. An accepted request always gets at least the time of the edge plus 1. If
	// an edge of these kinds comes late or again, it writes nothing, but Also lists the rows that
	// follow from it, as they are now: a caller can then propagate what a crash interrupted. Of two
	// requests that accepted each other, only the later one is listed, so that propagation ends.
	Apply(ctx context.Context, side Side, edges []Edge, rule Rule) []Result[Changed]
}

// writer is everything an import needs.
type writer interface {
	EdgeWriter

	// CreateUsers creates users together with their handles, zero counts and states: one of each, or none if all are active. Without an Err, a user
	// is Found, and the Value reports whether this call created it. If the Value is false, the id
	// existed already, and nothing of that user is changed, even if another handle is asked for.
	// [ErrHandleTaken] is the Err of a user whose handle belongs to another user, and is not taken over as by Register, where the clock
	// says the time and not CreatedAt. [ErrIDUnusable] is that of one whose id is above
	// [MaxUserID] or is a deleted user's; such a user claims no handle. If two users of
	// one batch want the same handle, one of them gets it. Calling it again with the same users is
	// harmless, also after a crash in between.
	CreateUsers(ctx context.Context, users []User, states ...UserState) []Result[bool]

	// Restore writes rows as they were elsewhere, unless rows with their keys are there. The results are those of all its lists, in
	// the order of the fields. Without an Err, the Value reports whether the row was written. A row is not Found if there is nothing
	// that it could belong to. Rows of one shard are written in several transactions: after an error some may have been written, and
	// calling it again is harmless.
	Restore(ctx context.Context, rows Restored) []Result[bool]
}

// Restored are rows as they were elsewhere, usually of one kind.
type Restored struct {
	// Posts belong to authors who exist. [ErrKeyTaken] if the author has another post with the key. Posts that are not deleted are
	// counted with their authors, whose versions rise; no user becomes active.
	Posts []PostRow

	// Comments belong to posts that exist and have not been deleted. They are counted with the posts, whose versions rise.
	// [ErrKeyTaken] if the user has another comment with the key on the post. Blocks do not prevent it, and whether the user exists
	// is not checked.
	Comments []Comment

	// Lists belong to users who exist, and keep their numbers. [ErrLimitReached] beyond [MaxLists].
	Lists []UserList

	// Identities are valid. Each is Found. [ErrKeyTaken] is the Err of those that stand for another user. The bound on
	// identities of a user is not checked.
	Identities []LinkedIdentity

	// Moderation are entries of the log. Each is Found, and posts and comments stay as they are. Afterwards the newest entry but for
	// reports about each user who exists says whether that user is suspended; such a change has the time At.
	Moderation []ModerationEntry
	At         Micros

	// Details are those of relations that are there, with the same time, and have none.
	Details []RelationRow

	// Annotations are all of the Kind. They belong to a follow (marks), to a pending request (messages) and to any later edge (first
	// follows). A message exists if it is not empty, and so does a detail. Every write raises the version of From. A mark beyond
	// [MaxSpecials] gets [ErrLimitReached].
	Annotations []Annotation
	Kind        AnnotationKind
}

// Store is an open store.
type Store interface {
	Bundler
	writer
	accountStore
	edgeChanger
	stateStore
	listStore
	importStore
	postWriter
	Leaser

	// OnCommit has a function called with each transaction that has changed something which caches keep or subscriptions report: after
	// its commit, and before the writer goes on. It is called even if the writer's context has ended, and by several writers at once. A
	// write may be several transactions, and several writes may share one. It is called with a Gap before anything is written to a shard
	// that has been restored, as versions that were lost come again, and with one that is Here only when it is noticed late that users have
	// moved to another shard. There is one such function; it is set before the first write.
	OnCommit(report func(context.Context, Change))

	// Ping asks all shards at once whether they answer, and returns one entry per shard in the
	// order of their ordinals.
	Ping(ctx context.Context) []ShardHealth

	// Close waits for running statements and closes every connection.
	Close() error
}

// Checkpoints stores the progress of long-running work by name. A name is at most 190 ASCII
// characters that do not end in a space.
type Checkpoints interface {
	// LoadCheckpoint returns the value last saved under a name, and whether there is one.
	LoadCheckpoint(ctx context.Context, name string) (value []byte, found bool, err error)

	// SaveCheckpoint replaces the value of a name. When it returns, the value survives a crash, and
	// so does everything written before it.
	SaveCheckpoint(ctx context.Context, name string, value []byte) error

	// DeleteCheckpoint deletes the value of a name. If there is none, that is no error.
	DeleteCheckpoint(ctx context.Context, name string) error
}
