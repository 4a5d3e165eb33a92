package localcache

import (
	"context"

	"kith/storage"
)

// Fresh reads rows of edges from the store itself, and has a cache know at once what they
// show: whoever has waited for a row there must find it in what is read after.
type Fresh struct {
	storage.Reader
	storage.PackedReader
	expect func(context.Context, []storage.Row)
}

// NewFresh makes a reader of a store that tells of the rows it reads.
func NewFresh(store storage.Reader, expect func(context.Context, []storage.Row)) *Fresh {
	return &Fresh{store, storage.PackedOf(store), expect}
}

// Edges implements [storage.EdgeReader].
func (f *Fresh) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := f.Reader.Edges(ctx, side, pairs)
	rows := make([]storage.Row, 0, 2*len(results))
	for _, r := range results {
		if r.Found {
			// What is on the inverse side is on the forward one.
			rows = append(rows, storage.Row{Side: side.Truth(), Edge: r.Value})
			if side.IsInverse() {
				rows = append(rows, storage.Row{Side: side, Edge: r.Value})
			}
		}
	}
	f.expect(ctx, rows)
	return results
}
