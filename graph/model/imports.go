package model

import "time"

// AccountsImport is a file of accounts that is worked on.
type AccountsImport struct {
	ID          string
	Kind        AccountsKind
	CreatedAt   time.Time
	ContinuesAt *time.Time // nil: it is done

	LineCount, DoneCount, ChangedCount int32

	All []*RefusedLine // that were refused, by line
}

// RefusedCount is how many lines were refused.
func (i *AccountsImport) RefusedCount() int32 { return int32(len(i.All)) }

// Refused are some of the lines behind one.
func (i *AccountsImport) Refused(afterLine int32) []*RefusedLine {
	const most = 100
	some := []*RefusedLine{}
	for _, l := range i.All {
		if l.Line > afterLine && len(some) < most {
			some = append(some, l)
		}
	}
	return some
}
