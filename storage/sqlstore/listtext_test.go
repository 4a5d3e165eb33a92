package sqlstore

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// The text of a list is read as a whole or not at all.
func TestParseEdges(t *testing.T) {
	edges, ok := parseEdges(storage.Inverse, 7, []byte("12 5,09223372036854775807 0,23 1700000000000000"), 2)
	want := []storage.Edge{
		{From: 2, To: 7, Type: storage.Following, UpdateTime: 5},
		{From: 9223372036854775807, To: 7, Type: storage.None},
		{From: 3, To: 7, Type: storage.Blocking, UpdateTime: 1_700_000_000_000_000},
	}
	check.That(t, ok && slices.Equal(edges, want), "%v, %v", edges, ok)
	edges, ok = parseEdges(storage.Forward, 7, nil, 0)
	check.That(t, ok && len(edges) == 0, "of nothing: %v, %v", edges, ok)
	for _, text := range []string{",", "12 5,", "12", "12 ", "1", "12 5 6", "12 -5", "52 5", "12 5,1", "x2 5"} {
		edges, ok := parseEdges(storage.Forward, 7, []byte(text), 1)
		check.That(t, !ok, "%q is read as %v", text, edges)
	}
}
