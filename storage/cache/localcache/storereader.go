package localcache

import (
	"context"

	"kith/storage"
)

// StoreReader reads rows of edges from the store itself, and makes a cache know them at once: a caller
// that has waited for a row must find it in whatever it reads next.
type StoreReader struct {
	storage.Bundler
	expect func(context.Context, []storage.Row)
}

// NewStoreReader makes a reader of a store that passes the rows it reads to expect.
func NewStoreReader(store storage.Bundler, expect func(context.Context, []storage.Row)) *StoreReader {
	return &StoreReader{store, expect}
}

// Bundle implements [storage.Bundler].
func (f *StoreReader) Bundle(ctx context.Context, b *storage.Bundle) {
	f.Bundler.Bundle(ctx, b)
	for _, side := range storage.AllSides {
		if edges := storage.EdgeLookups[side].In(b); edges != nil {
			f.saw(ctx, side, edges.Results)
		}
	}
}

func (f *StoreReader) saw(ctx context.Context, side storage.Side, results []storage.Result[storage.Edge]) {
	rows := make([]storage.Row, 0, 2*len(results))
	for _, r := range results {
		if r.Found {
			// A row on the inverse side is on the forward side too.
			rows = append(rows, storage.Row{Side: side.Truth(), Edge: r.Value})
			if side.IsInverse() {
				rows = append(rows, storage.Row{Side: side, Edge: r.Value})
			}
		}
	}
	f.expect(ctx, rows)
}
