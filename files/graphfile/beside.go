package graphfile

import (
	"errors"
	"fmt"
	"slices"

	"kith/storage"
)

// The kinds of files of what lies beside edges.
const (
	Marks      Kind = "marks"
	Messages   Kind = "messages"
	Dismissals Kind = "dismissals"
)

// besides are the kinds of files of what lies beside edges.
var besides = [len(storage.BesideKinds)]Kind{storage.BesideMark: Marks, storage.BesideMessage: Messages, storage.BesideDismissal: Dismissals}

// errEmpty: a row beside an edge that says nothing.
var errEmpty = errors.New("it says nothing")

// BesideKind is the kind of a file of rows beside edges.
func BesideKind(b storage.BesideKind) Kind { return besides[b] }

// Beside is what lies beside edges in files of a kind; false for another kind.
func (k Kind) Beside() (storage.BesideKind, bool) {
	i := slices.Index(besides[:], k)
	return storage.BesideKind(max(i, 0)), i >= 0
}

// ParseBeside reads a record. Texts have to be as those that users write.
func ParseBeside(kind storage.BesideKind, record []string) (row storage.Beside, err error) {
	f := fieldsOf(BesideKind(kind), record)
	row.From, row.To = f.id(0), f.id(1)
	switch kind {
	case storage.BesideMark:
		row.Special, row.Text = f.truth(2), f.text(3, storage.MaxRemarkLength)
	case storage.BesideMessage:
		row.Text = f.text(2, storage.MaxMessageLength)
	case storage.BesideDismissal:
		row.At = f.time(2)
		return row, f.err
	}
	if row.Text == "" && !row.Special {
		f.check(errEmpty)
	}
	return row, f.err
}

// BesideRecord is the record of a row, which [ParseBeside] reads as the same.
func BesideRecord(kind storage.BesideKind, row storage.Beside) ([]string, error) {
	if row.From <= 0 || row.To <= 0 || !writableTime(row.At) {
		return nil, fmt.Errorf("the row %d → %d of %s is damaged: no file can hold it", row.From, row.To, BesideKind(kind))
	}
	record := []string{row.From.String(), row.To.String()}
	switch kind {
	case storage.BesideMark:
		record = append(record, truthText(row.Special), row.Text)
	case storage.BesideMessage:
		record = append(record, row.Text)
	case storage.BesideDismissal:
		record = append(record, timeText(row.At))
	}
	return record, nil
}
