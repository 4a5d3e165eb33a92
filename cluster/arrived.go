package cluster

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// reportedRows remembers the rows that were reported to the caches.
type reportedRows struct {
	known *lru.Cache[storage.Row, struct{}]
}

// mostReportedRows is how many rows are remembered, the latest: some 3 MB.
const mostReportedRows = 1 << 14

func newReportedRows() reportedRows {
	known, err := lru.New[storage.Row, struct{}](mostReportedRows)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return reportedRows{known}
}

// fresh returns the rows that were not reported to the caches yet.
func (r reportedRows) fresh(rows []storage.Row) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row storage.Row) bool {
		_, known := r.known.Get(row)
		return known
	})
}

// remember records rows after they were reported to the caches.
func (r reportedRows) remember(rows []storage.Row) {
	for _, row := range rows {
		r.known.Add(row, struct{}{})
	}
}
