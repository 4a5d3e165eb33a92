package deployment

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// rowsTold remembers the rows of which the caches were told.
type rowsTold struct {
	known *lru.Cache[storage.Row, struct{}]
}

// mostRowsTold is how many rows are remembered, the latest: some 3 MB.
const mostRowsTold = 1 << 14

func newRowsTold() rowsTold {
	known, err := lru.New[storage.Row, struct{}](mostRowsTold)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return rowsTold{known}
}

// fresh returns the rows of which the caches were not told.
func (r rowsTold) fresh(rows []storage.Row) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row storage.Row) bool {
		_, known := r.known.Get(row)
		return known
	})
}

// remember records rows after the caches were told of them.
func (r rowsTold) remember(rows []storage.Row) {
	for _, row := range rows {
		r.known.Add(row, struct{}{})
	}
}
