package localcache

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// The rows that were reported last are known, each once, and no rows before them.
func TestTheRowsReportedLastAreKnown(t *testing.T) {
	rows := newReported()
	row := func(n int) storage.Row {
		return storage.Row{Edge: storage.Edge{From: 1, To: storage.UserID(n), Type: storage.Following, UpdateTime: storage.Micros(n)}}
	}
	const last = 2*reportedKept + 10
	for n := 1; n <= last; n++ {
		for range 2 { // if it is reported again, a row does not displace another
			rows.add(true, row(n))
		}
		must.That(t, rows.has(row(n)) && !rows.has(row(n+1)), "row %d of %d", n, last)
	}
	for n := 1; n <= last; n++ {
		must.Equal(t, fmt.Sprintf("whether row %d of %d is known", n, last), rows.has(row(n)), n > last-reportedKept)
	}
}

// A row is unreported until it was reported, and so are a newer version of it and its other side.
func TestRowsAreReportedOnce(t *testing.T) {
	c := New(Config{Bytes: 1 << 20})
	defer c.Close()
	row := func(side storage.Side, at storage.Micros) storage.Row {
		return storage.Row{Side: side, Edge: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: at}}
	}
	all := []storage.Row{row(storage.Forward, 1), row(storage.Inverse, 1), row(storage.Inverse, 2)}
	for _, step := range []struct {
		report func()
		left   []storage.Row
	}{
		{func() {}, all},
		{func() { c.RequireRows(all[:1]) }, all[1:]},
		{func() { c.Apply(t.Context(), ChangedRows(all[1]), true) }, all[2:]},
	} {
		step.report()
		check.Equal(t, "what is unreported", c.Unreported(false, all), step.left)
	}
}

// ChangedRows is a change of rows, after which the counts of their owners are not known.
func ChangedRows(rows ...storage.Row) (c storage.Change) {
	for _, r := range rows {
		c.AddRow(r.Side, r.Edge)
	}
	return c
}
