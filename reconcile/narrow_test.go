package reconcile_test

import (
	"testing"

	"kith/internal/check"
	"kith/reconcile"
	"kith/storage"
)

// If a large group differs, a second pass of digests finds the part that differs, and only that part is
// read.
func TestOfALargeGroupAPartIsRead(t *testing.T) {
	g := newGraph(t, 21, 3, 40, 1200) // nearly one class for each user
	lost := g.rows(storage.Forward)[0].Pair()
	g.remove(storage.Inverse, lost)
	cfg := quick(g)
	read := map[int64]reconcile.Report{}
	for _, rows := range []int64{1000, 2} {
		cfg.GroupRows = rows
		r := scan(t, cfg)
		found := 0
		for _, f := range r.Findings {
			if f.Kind == reconcile.Missing && f.Pair() == lost {
				found++
			}
		}
		check.That(t, found == 1 && r.Total() == 1, "groups of %d rows: %v", rows, r.Findings)
		read[rows] = r
	}
	r := read[1000]
	check.That(t, r.Groups == len(storage.Truths)*storage.Classes && r.GroupsRead == 1, "%+v", r)
	r = read[2]
	check.That(t, r.Groups > len(storage.Truths)*storage.Classes && r.GroupsRead == 1 && 2*r.RowsRead <= read[1000].RowsRead, "%d rows of %d groups were read, without the second pass %d", r.RowsRead, r.Groups, read[1000].RowsRead)
}
