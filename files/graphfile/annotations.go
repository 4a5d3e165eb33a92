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
var besides = [len(storage.AnnotationKinds)]Kind{storage.AnnotationMark: Marks, storage.AnnotationMessage: Messages, storage.AnnotationDismissal: Dismissals}

// errEmpty: a row beside an edge that says nothing.
var errEmpty = errors.New("it says nothing")

// AnnotationKind is the kind of a file of rows beside edges.
func AnnotationKind(b storage.AnnotationKind) Kind { return besides[b] }

// Annotation is what lies beside edges in files of a kind; false for another kind.
func (k Kind) Annotation() (storage.AnnotationKind, bool) {
	i := slices.Index(besides[:], k)
	return storage.AnnotationKind(max(i, 0)), i >= 0
}

// ParseAnnotation reads a record. Texts have to be as those that users write.
func ParseAnnotation(kind storage.AnnotationKind, record []string) (row storage.Annotation, err error) {
	f := fieldsOf(AnnotationKind(kind), record)
	row.From, row.To = f.id(0), f.id(1)
	switch kind {
	case storage.AnnotationMark:
		row.Special, row.Text = f.truth(2), f.text(3, storage.MaxRemarkLength)
	case storage.AnnotationMessage:
		row.Text = f.text(2, storage.MaxMessageLength)
	case storage.AnnotationDismissal:
		row.At = f.time(2)
		return row, f.err
	}
	if row.Text == "" && !row.Special {
		f.check(errEmpty)
	}
	return row, f.err
}

// AnnotationRecord is the record of a row, which [ParseAnnotation] reads as the same.
func AnnotationRecord(kind storage.AnnotationKind, row storage.Annotation) ([]string, error) {
	if row.From <= 0 || row.To <= 0 || !writableTime(row.At) {
		return nil, fmt.Errorf("the row %d → %d of %s is damaged: no file can hold it", row.From, row.To, AnnotationKind(kind))
	}
	record := []string{row.From.String(), row.To.String()}
	switch kind {
	case storage.AnnotationMark:
		record = append(record, truthText(row.Special), row.Text)
	case storage.AnnotationMessage:
		record = append(record, row.Text)
	case storage.AnnotationDismissal:
		record = append(record, timeText(row.At))
	}
	return record, nil
}
