package graphfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/accounts"
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
	if err := fits(BesideKind(kind), record); err != nil {
		return row, err
	}
	if row.From, err = ParseID([]byte(strings.TrimSpace(record[0]))); err != nil {
		return row, err
	}
	if row.To, err = ParseID([]byte(strings.TrimSpace(record[1]))); err != nil {
		return row, err
	}
	switch kind {
	case storage.BesideMark:
		special := slices.Index(truths, strings.ToLower(strings.TrimSpace(record[2])))
		if special < 0 {
			return row, fmt.Errorf("special is one of %s", strings.Join(truths, ", "))
		}
		row.Special = special == 1
		row.Text, err = accounts.CheckText("remark", record[3], 0, storage.MaxRemarkLength)
		if err == nil && row.Text == "" && !row.Special {
			err = errEmpty
		}
	case storage.BesideMessage:
		row.Text, err = accounts.CheckText("message", record[2], 0, storage.MaxMessageLength)
		if err == nil && row.Text == "" {
			err = errEmpty
		}
	case storage.BesideDismissal:
		row.At, err = parseTime([]byte(strings.TrimSpace(record[2])))
	}
	return row, err
}

// BesideRecord is the record of a row, which [ParseBeside] reads as the same.
func BesideRecord(kind storage.BesideKind, row storage.Beside) ([]string, error) {
	if row.From <= 0 || row.To <= 0 || !writableTime(row.At) {
		return nil, fmt.Errorf("the row %d → %d of %s is damaged: no file can hold it", row.From, row.To, BesideKind(kind))
	}
	record := []string{row.From.String(), row.To.String()}
	switch kind {
	case storage.BesideMark:
		special := truths[0]
		if row.Special {
			special = truths[1]
		}
		record = append(record, special, row.Text)
	case storage.BesideMessage:
		record = append(record, row.Text)
	case storage.BesideDismissal:
		record = append(record, string(AppendTime(nil, row.At)))
	}
	return record, nil
}
