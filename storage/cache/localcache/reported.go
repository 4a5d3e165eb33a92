package localcache

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// reported are the rows that were reported to the caches last: when their events come, or when they are read again, nothing has to
// be forgotten again.
type reported struct {
	rows *lru.Cache[storage.Row, struct{}]
}

// reportedKept is how many rows are remembered: some 3 MB.
const reportedKept = 1 << 14

func newReported() reported {
	rows, err := lru.New[storage.Row, struct{}](reportedKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return reported{rows}
}

func (r reported) add(rows []storage.Row) {
	for _, row := range rows {
		r.rows.Add(row, struct{}{})
	}
}

func (r reported) has(row storage.Row) bool { return r.rows.Contains(row) }

// Unreported returns those rows that were not reported to the caches lately.
func (c *Cache) Unreported(rows []storage.Row) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), c.reported.has)
}
