package storage

import (
	"cmp"
	"context"
)

// MaxImports is how many imports of accounts a user may have at a time.
const MaxImports = 5

// ImportID names an import of accounts: Number is the time at which it was created, or later if its owner has created two at once.
type ImportID struct {
	Owner  UserID
	Number int64
}

// ImportPart is some lines of an import of accounts, which are worked on together. Stores keep it with its owner, and do not look into it.
type ImportPart struct {
	ImportID
	Part    int64  // from 0
	Kind    string // of the file
	Line    int64  // the number of its first line in the file
	Size    int64  // how many lines it has
	Made    int64  // how many of them have changed something
	Refused int64  // how many were refused
	Done    bool
	Lines   string // what is to be done or, if it is done, what was refused
	DueAt   Micros // when it is worked on or, if it is done, removed
}

// RefusedQuery asks for the parts of an import, From to To, that are done, and of which lines were refused.
type RefusedQuery struct {
	ImportID
	From, To int64
}

// Kinds of look-ups of imports. Every query is Found. No cache keeps them.
var (
	// ImportLookups reads the parts of all imports of an owner, newest import first, without Lines.
	ImportLookups = NewKind[UserID, []ImportPart]("imports", nil)

	// RefusedLookups reads parts in their order, with Lines.
	RefusedLookups = NewKind[RefusedQuery, []ImportPart]("imports.refused", nil)

	// DueImportLookups reads the parts of a shard that are due until a time, by DueAt, Owner, Number and Part.
	DueImportLookups = NewKind[ShardQuery[ImportPart], []ImportPart]("imports.due", nil)
)

// importStore keeps imports of accounts, which end with their owners.
type importStore interface {
	// AddImport adds an import, all of whose parts have its ID. The number is the given one or, unless that is greater, the number of the
	// owner's newest import plus 1. Beyond [MaxImports] the oldest one that is done is removed. [ErrUserUnknown]; [ErrLimitReached] if
	// none is done.
	AddImport(ctx context.Context, parts []ImportPart) (ImportID, error)

	// FinishImport writes Made, Refused, Done, Lines and DueAt of a part, if it is there and not done.
	FinishImport(ctx context.Context, part ImportPart) (changed bool, err error)

	// DeferImports has all parts of an owner that are not done, and due before a time, be due then.
	DeferImports(ctx context.Context, owner UserID, until Micros) error

	// RemoveImport removes an import.
	RemoveImport(ctx context.Context, id ImportID) (removed bool, err error)
}

// Compare orders parts of one owner's imports, newest import first.
func (p ImportPart) Compare(q ImportPart) int {
	return cmp.Or(cmp.Compare(q.Number, p.Number), cmp.Compare(p.Part, q.Part))
}
