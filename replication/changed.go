package replication

import (
	"context"

	"kith/storage"
)

// A Log has what is written to some shards of a store. Positions in it are text that only the log understands.
type Log interface {
	// Name distinguishes the log from others of the store, and is the same in every run.
	Name() string

	// Title is the log's name for people.
	Title() string

	// Begin is the position before everything that the log has ever had; empty if it has none that can be named.
	Begin() string

	// End is the position after everything that is in the log now.
	End(ctx context.Context) (string, error)

	// Read passes what is committed after a position to take, in order. It ends at the position upTo or, if that is empty, goes on without
	// end. The rows of one transaction are passed together. A transaction that changes no edges may be passed with nothing in it.
	//
	// If from is nil, only rows of edges are passed, as soon as they are logged. Otherwise users and posts are, too, and each transaction
	// once it can be read from there.
	//
	// Its errors: those of take; the context's; [ErrLost]; others, after which a retry may succeed.
	Read(ctx context.Context, from storage.Answerer, after, upTo string, take func(Changed) error) error
}

// Changed is what a log tells of one transaction or, of a relation_log, by one of its entries.
type Changed struct {
	storage.Change // its Rows are those of the log: one that was deleted by hand has type None at time 0

	Comments []storage.CommentID // that were written, or are gone

	ID string                 // names it in its log, the same whenever it is read
	At func() (string, error) // the position after it, to be asked only during the call that passes it
}
