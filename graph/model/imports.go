package model

import (
	"time"

	"kith/storage"
)

// AccountsImport is a file of accounts that is worked on.
type AccountsImport struct {
	ID          string
	Kind        AccountsKind
	CreatedAt   time.Time
	ContinuesAt *time.Time // nil: it is done

	LineCount, DoneCount, ChangedCount, RefusedCount int32

	Parts []storage.ImportPart // without their lines
}
