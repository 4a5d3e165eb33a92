package graphfile

import (
	"errors"
	"slices"

	"kith/storage"
)

// The kinds of files of what lies beside edges.
const (
	Marks    Kind = "marks"
	Messages Kind = "messages"
	Firsts   Kind = "first_follows"
)

// besides are the kinds of files of what lies beside edges.
var besides = [len(storage.AnnotationKinds)]Kind{storage.AnnotationMark: Marks, storage.AnnotationMessage: Messages, storage.AnnotationFirst: Firsts}

// errEmpty: a row beside an edge that says nothing.
var errEmpty = errors.New("it says nothing")

// AnnotationKind is the kind of a file of rows beside edges.
func AnnotationKind(b storage.AnnotationKind) Kind { return besides[b] }

// Annotation is what lies beside edges in files of a kind; false for another kind.
func (k Kind) Annotation() (storage.AnnotationKind, bool) {
	i := slices.Index(besides[:], k)
	return storage.AnnotationKind(max(i, 0)), i >= 0
}

// AnnotationFormat is the format of rows beside edges.
func AnnotationFormat(kind storage.AnnotationKind) Format[storage.Annotation] {
	said := func(row *storage.Annotation) []column {
		switch kind {
		case storage.AnnotationMark:
			return []column{truth(&row.Special, true), text(&row.Text, storage.MaxRemarkLength), attributes(&row.Attributes)}
		case storage.AnnotationMessage:
			return []column{text(&row.Text, storage.MaxMessageLength)}
		}
		return []column{moment(&row.At)}
	}
	return Format[storage.Annotation]{AnnotationKind(kind), func(row *storage.Annotation) []column {
		return append([]column{id(&row.From), id(&row.To)}, said(row)...)
	}, func(row *storage.Annotation) error {
		if kind < storage.AnnotationFirst && *row == (storage.Annotation{Pair: row.Pair}) {
			return errEmpty
		}
		return nil
	}}
}
