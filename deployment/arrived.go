package deployment

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// rowsTold remembers which rows the caches were told of.
type rowsTold struct {
	known *lru.Cache[storage.Row, struct{}]
}

// mostRowsTold is how many rows are remembered, those seen last: some 3 MB.
const mostRowsTold = 1 << 14

func newRowsTold() rowsTold {
	known, err := lru.New[storage.Row, struct{}](mostRowsTold)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return rowsTold{known}
}

// fresh returns the rows that the caches were not told of.
func (r rowsTold) fresh(rows []storage.Row) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row storage.Row) bool {
		_, known := r.known.Get(row)
		return known
	})
}

// remember is called when they have been told.
func (r rowsTold) remember(rows []storage.Row) {
	for _, row := range rows {
		r.known.Add(row, struct{}{})
	}
}
