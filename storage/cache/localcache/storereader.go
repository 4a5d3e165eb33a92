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
		edges := storage.EdgeLookups[side].In(b)
		if edges == nil {
			continue
		}
		rows := make([]storage.Row, 0, 2*len(edges.Results))
		for _, r := range edges.Results {
			if r.Found {
				rows = append(rows, storage.Row{Side: side.Truth(), Edge: r.Value}) // a row of an inverse side is on the other one too
				if side.IsInverse() {
					rows = append(rows, storage.Row{Side: side, Edge: r.Value})
				}
			}
		}
		f.expect(ctx, rows)
	}
}
