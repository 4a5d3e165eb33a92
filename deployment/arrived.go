package deployment

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kith/storage"
)

// rowsTold remembers which rows the caches were told of.
type rowsTold struct {
	mu    *sync.Mutex
	known *simplelru.LRU[storage.Row, struct{}]
}

// mostRowsTold is how many rows are remembered, those seen last: some 3 MB.
const mostRowsTold = 1 << 14

func newRowsTold() rowsTold {
	known, err := simplelru.NewLRU[storage.Row, struct{}](mostRowsTold, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return rowsTold{&sync.Mutex{}, known}
}

// fresh returns the rows that the caches were not told of.
func (r rowsTold) fresh(rows []storage.Row) (fresh []storage.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		if _, known := r.known.Get(row); !known {
			fresh = append(fresh, row)
		}
	}
	return fresh
}

// remember is called when they have been told.
func (r rowsTold) remember(rows []storage.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		r.known.Add(row, struct{}{})
	}
}
