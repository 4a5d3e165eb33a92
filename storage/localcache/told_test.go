package localcache

import (
	"testing"

	"kith/storage"
)

// The rows told last are known, each once, and none before them.
func TestTheRowsToldLastAreKnown(t *testing.T) {
	var rows told
	row := func(n int) storage.Row {
		return storage.Row{Edge: storage.Edge{From: 1, To: storage.UserID(n), Type: storage.Following, UpdateTime: storage.Micros(n)}}
	}
	const last = 2*toldKept + 10
	for n := 1; n <= last; n++ {
		for range 2 { // told again, a row takes no other's place
			rows.add(row(n))
		}
		if !rows.has(row(n)) || rows.has(row(n+1)) {
			t.Fatalf("row %d of %d", n, last)
		}
	}
	for n := 1; n <= last; n++ {
		if known := rows.has(row(n)); known != (n > last-toldKept) {
			t.Fatalf("row %d of %d is known: %t", n, last, known)
		}
	}
}
