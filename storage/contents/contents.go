// Package contents is the contract by which all that a store holds is read, for exports.
package contents

import (
	"context"

	"kith/storage"
)

// Reader reads all that a shard holds, as of one moment. Buckets may move from one shard to another
// meanwhile. A caller that reads all shards therefore reads from each one the buckets that are still
// missing, until none is.
type Reader interface {
	// Shards is the number of shards. It may grow.
	Shards() int

	// ReadShard calls read with one shard as it is at one moment, which is not later than read's
	// first page: nothing that is written afterwards is seen, and no writer waits. The moment ends
	// with read, whose error comes back. If the connection to the shard is lost, read's next page
	// fails: a moment is never continued as another. [ErrUnavailable].
	ReadShard(ctx context.Context, shard int, read func(Moment) error) error
}

// Moment is one shard at one moment. It is read in pages; a page that is shorter than its limit
// is the last.
type Moment interface {
	// Served are the buckets that the shard had at the moment, as numbers of a [storage.Choice]. Users and
	// rows of other buckets may be listed, too: these buckets are moving, and another shard has
	// them.
	Served() storage.Choice

	// Users lists the users whose ids are greater than after, ascending, at most limit. Hidden users
	// are included, deleted users are not.
	Users(ctx context.Context, after storage.UserID, limit int) ([]Account, error)

	// Rows lists the rows of one of [storage.Truths] behind a pair, in the order of [storage.Side.Compare], at most
	// limit. Rows of every type are listed, tombstones included, except those of time 0, which
	// count as no row. The zero Pair is the beginning.
	Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error)

	// Relations are the Rows of the Relations side, with their details.
	Relations(ctx context.Context, after storage.Pair, limit int) ([]storage.RelationRow, error)

	// Lists lists the lists of users behind one, by Owner, then by Number, at most limit. The zero ListID is the beginning.
	Lists(ctx context.Context, after storage.ListID, limit int) ([]storage.UserList, error)

	// Annotations lists the rows of one kind beside edges, behind a pair, by From, then by To, at most
	// limit. The zero Pair is the beginning.
	Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) ([]storage.Annotation, error)

	// Posts lists the posts behind one, deleted ones included, by author, then by number, at most
	// limit. The zero PostID is the beginning.
	Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error)

	// Identities lists the identities behind a digest, see [storage.Identity.Digest], in its order, at most limit. Each
	// is in the bucket of its digest, whichever user it stands for. "" is the beginning.
	Identities(ctx context.Context, after string, limit int) ([]storage.LinkedIdentity, error)

	// Moderation lists the entries of the moderation log behind one, by Owner, then by At, at most limit. Of after only
	// these two count; zero is the beginning.
	Moderation(ctx context.Context, after storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error)

	// Comments lists the comments behind one, by the author of the post, then by number, at most
	// limit. Comments on posts that have been deleted are not listed. The zero CommentID is the
	// beginning.
	Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.Comment, error)
}

// Account is a user and whether it is visible.
type Account struct {
	User  storage.User
	State storage.UserState
}
