package cluster

import (
	"slices"
	"testing"

	"kith/storage"
)

// The caches are notified of a row once, and once more of a newer version and of its other side.
func TestArrivedRowsAreReportedOnce(t *testing.T) {
	reported := newReportedRows()
	row := func(side storage.Side, at storage.Micros) storage.Row {
		return storage.Row{Side: side, Edge: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: at}}
	}
	all := []storage.Row{row(storage.Forward, 1), row(storage.Inverse, 1), row(storage.Inverse, 2)}
	if got := reported.fresh(all); !slices.Equal(got, all) {
		t.Errorf("first: %v", got)
	}
	if got := reported.fresh(all); !slices.Equal(got, all) {
		t.Errorf("while they are being reported: %v", got)
	}
	reported.remember(all[:2])
	if got := reported.fresh(all); !slices.Equal(got, all[2:]) {
		t.Errorf("then: %v", got)
	}
}
