// Package storage is the contract between Kith and whatever keeps its graph.
//
// A store holds users and the directed edges between them. Every edge is kept
// twice: in `following`, sharded by the user it leaves (the source of truth),
// and in `follower`, sharded by the user it enters. Readers ask one Side or the
// other, always in batches; an engine turns a batch into one statement a shard.
//
// The interfaces are small and split by role. [Store] is what the program
// opens; everything above it should ask for the least it needs.
package storage

import "context"

// A Result answers one key of a batched look-up. Look-ups return exactly one
// Result for each key, at the key's index; a key that occurs twice is answered
// twice.
//
// Found tells whether there is such a row. Err is set when the shard that owns
// the key could not answer (see [ErrUnavailable]), or when the context ended
// before it did; other keys of the same batch are not affected by it. When Err is
// set, Found is false, and a write has changed nothing for that key.
type Result[T any] struct {
	Value T
	Found bool
	Err   error
}

// UserReader looks users up.
type UserReader interface {
	// Users reads users by id.
	Users(ctx context.Context, ids []UserID) []Result[User]

	// UserIDs resolves handles, which must be in their folded (lower-case) form. What
	// is no handle by its form is not found, and takes nothing from the others.
	UserIDs(ctx context.Context, handles []string) []Result[UserID]
}

// CountReader reads how many edges of type [Following] leave and enter a user.
type CountReader interface {
	// Counts reads the counts of users by id. They lie on the user's own shard
	// and are kept by every write; they are never computed by counting.
	Counts(ctx context.Context, ids []UserID) []Result[Counts]
}

// EdgeReader reads edges from either side.
//
// The owner of an edge is the user whose shard holds it on the given side: From
// on the [Forward] side, To on the [Inverse] side. The other end is its peer.
type EdgeReader interface {
	// Edges reads single edges. A tombstone (type [None]) is Found like any other
	// row: callers look at Type.
	Edges(ctx context.Context, side Side, pairs []Pair) []Result[Edge]

	// Pages reads a stretch of each owner's list: the edges of one type, newest first.
	// See [PageQuery] for bounds and order. Every query is Found.
	Pages(ctx context.Context, side Side, queries []PageQuery) []Result[[]Edge]

	// Neighbours reads the whole list of each owner: the peers of its edges of
	// type [Following], in ascending order of id. The caller bounds what it asks
	// for by [CountReader.Counts] first. Every owner is Found.
	Neighbours(ctx context.Context, side Side, owners []UserID) []Result[[]UserID]

	// AllRows reads a stretch of each owner's rows that are no tombstones, whatever their
	// type, in ascending order of the peer's id. Every query is Found.
	AllRows(ctx context.Context, side Side, queries []RowsQuery) []Result[[]Edge]
}

// UserWriter makes users.
type UserWriter interface {
	// CreateUsers makes users together with their handles and zero counts. Without
	// an Err, a user is Found, and the Value tells whether this call made it: false
	// means that the id existed already, in which case nothing of it is changed,
	// whatever handle is asked for. [ErrHandleTaken] is the Err of a user whose
	// handle belongs to somebody else; of two in one batch who want the same
	// handle, one gets it. Calling it again with the same users is harmless, also
	// after a crash in between.
	CreateUsers(ctx context.Context, users []User) []Result[bool]
}

// EdgeWriter writes edges, one side at a time.
type EdgeWriter interface {
	// Apply writes edges to one side, each only if the rule allows it, together
	// with the counts that follow from it. The edges of one shard are one
	// transaction: all of them or, with the same Err on each, none. Of edges that
	// name the same pair, each is judged after the ones before it.
	//
	// Without an Err, an edge is Found, and its Row is what was there after it was
	// judged. What it says is taken as it is: a newer edge is written also when its
	// type is the row's.
	//
	// On the Forward side Apply changes following_count of From, on the Inverse
	// side follower_count of To, by exactly the difference between the old and
	// the new type, and raises the version of every owner it changed an edge of.
	// Owners without counts get them. Applying the same edges again, late or out of
	// order, changes nothing more. Whatever the side, it keeps friend_count of the
	// owners, and ends the marks of follows that it ends.
	//
	// What two users are to each other is four rows on the shard of either: the owner's
	// follow or block, the peer's, and what each has asked. So some edges change others,
	// in the same transaction, and what they change is told as Also:
	//
	//   - Forward: [Following] towards somebody who blocks the owner is not written.
	//     [Blocking] cancels the owner's pending request.
	//   - Inverse: [Blocking] by the peer ends the owner's follow, however new, and
	//     cancels its pending request.
	//   - Inbox: [Accepted] makes the owner follow the peer, unless one blocks the other.
	//     [Pending] and [Accepted] accept the owner's own pending request, where the two
	//     are no further apart than the requests' time to live: requests that cross
	//     accept each other. [Removed] ends the owner's follow. A follow that is newer
	//     than the edge stays, and one that was ended since stays ended.
	//
	// A row that is changed so gets the time of the edge, or the next one that is newer
	// than the row's own; an accepted request always one behind that of the edge. An edge of
	// these kinds that comes late or again writes nothing, but tells the rows that follow
	// from it as they are by now, so that what a crash has kept from being carried on is
	// carried on. Of two requests that accepted each other only the later one is told, so that
	// carrying ends.
	Apply(ctx context.Context, side Side, edges []Edge, rule Rule) []Result[Applied]
}

// Reader is everything a query needs.
type Reader interface {
	UserReader
	CountReader
	ProfileReader
	EdgeReader
	PackedReader
	RelationReader
	Bundler
}

// Writer is everything an import needs.
type Writer interface {
	UserWriter
	EdgeWriter
}

// Pinger reports which shards answer.
type Pinger interface {
	// Ping asks every shard for a sign of life, at once, and returns one entry a
	// shard in the order of their ordinals.
	Ping(ctx context.Context) []ShardHealth
}

// Store is an open store.
type Store interface {
	Reader
	Writer
	AccountStore
	EdgeChanger
	RequestChanger
	MarkWriter
	StateStore
	SuggestionStore
	HandleSearcher
	Leaser
	Pinger
	Snapshots
	UserLister

	// Empty reports whether the store holds no user at all.
	Empty(ctx context.Context) (bool, error)

	// Close waits for the statements under way and releases every connection.
	Close() error
}
