package storage

import "context"

// BesideKind is a kind of rows beside edges. Each row has the key of two users, and belongs to
// From.
type BesideKind uint8

const (
	BesideMark      BesideKind = iota // the mark on the follow From → To
	BesideMessage                     // the message of the pending request From → To
	BesideDismissal                   // From does not want To suggested
)

// BesideKinds are all of them.
var BesideKinds = [...]BesideKind{BesideMark, BesideMessage, BesideDismissal}

// A Beside is a row of one kind beside edges.
type Beside struct {
	Pair
	Special bool   // of a mark
	Text    string // the remark of a mark, or the message
	At      Micros // of a dismissal
}

// BesideWriter writes rows beside edges as they were elsewhere, for imports.
type BesideWriter interface {
	// AddBeside writes those rows of one kind that do not exist yet. Without an Err, the Value
	// reports whether the row was written. A row is not Found if there is nothing that it could be
	// beside: a mark without the follow, a message without the pending request, a dismissal by a
	// user who does not exist. A message exists if it is not empty.
	//
	// Marks and messages raise the version of From. A mark beyond [MaxSpecials] gets
	// [ErrLimitReached]; of the dismissals of a user the newest [MaxDismissals] stay. Rows of one
	// shard are written in several transactions: after an error some may have been written, and
	// calling it again is harmless.
	AddBeside(ctx context.Context, kind BesideKind, rows []Beside) []Result[bool]
}
