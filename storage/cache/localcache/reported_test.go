package localcache

import (
	"testing"

	"kith/storage"
)

// The rows that were reported last are known, each once, and no rows before them.
func TestTheRowsReportedLastAreKnown(t *testing.T) {
	var rows reported
	row := func(n int) storage.Row {
		return storage.Row{Edge: storage.Edge{From: 1, To: storage.UserID(n), Type: storage.Following, UpdateTime: storage.Micros(n)}}
	}
	const last = 2*reportedKept + 10
	for n := 1; n <= last; n++ {
		for range 2 { // if it is reported again, a row does not displace another
			rows.add(row(n))
		}
		if !rows.has(row(n)) || rows.has(row(n+1)) {
			t.Fatalf("row %d of %d", n, last)
		}
	}
	for n := 1; n <= last; n++ {
		if known := rows.has(row(n)); known != (n > last-reportedKept) {
			t.Fatalf("row %d of %d is known: %t", n, last, known)
		}
	}
}
