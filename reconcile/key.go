package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// pairs are the pairs of tables that are compared, named by their forward tables.
var pairs = storage.Truths

// A Key names an edge in one of the pairs of tables.
type Key struct {
	Side storage.Side // the forward table
	Pair storage.Pair
}

// keyOf is the key of a row of either table.
func keyOf(r storage.Row) Key { return Key{r.Side.Truth(), r.Edge.Pair()} }

// KeysOf returns the keys of edges in the pair of tables of a side.
func KeysOf(side storage.Side, pairs []storage.Pair) []Key {
	return storage.Each(pairs, func(p storage.Pair) Key { return Key{side.Truth(), p} })
}

// bothRows are the two rows of one edge, type None at time 0 if there is none.
type bothRows struct{ forward, inverse storage.Edge }

// readBoth reads both rows of each edge, the inverse ones first. The forward row of any event was
// committed before its inverse row, so a forward row is never read older than the inverse row. If a
// shard does not answer, its rows have an Err.
func readBoth(ctx context.Context, store Edges, keys []Key) []storage.Result[bothRows] {
	results := make([]storage.Result[bothRows], 0, len(keys))
	for chunk := range slices.Chunk(keys, readAtOnce) {
		inverse := readRows(ctx, store, chunk, storage.Side.Replica)
		for i, forward := range readRows(ctx, store, chunk, storage.Side.Truth) {
			err := cmp.Or(inverse[i].Err, forward.Err)
			results = append(results, storage.Result[bothRows]{Value: bothRows{forward.Value, inverse[i].Value}, Found: err == nil, Err: err})
		}
	}
	return results
}

// readRows reads the row of each edge in one table of its pair, with one call per table.
func readRows(ctx context.Context, store Edges, keys []Key, table func(storage.Side) storage.Side) []storage.Result[storage.Edge] {
	rows := make([]storage.Result[storage.Edge], len(keys))
	for _, pair := range pairs {
		var at []int
		for i, k := range keys {
			if k.Side == pair {
				at = append(at, i)
			}
		}
		side := table(pair)
		for at := range slices.Chunk(at, readAtOnce) {
			asked := storage.Each(at, func(i int) storage.Pair { return keys[i].Pair })
			for j, r := range store.Edges(ctx, side, asked) {
				p := asked[j]
				if r.Err != nil {
					r.Err = fmt.Errorf("read %s from %d to %d: %w", side, p.From, p.To, r.Err)
				}
				r.Value.From, r.Value.To, r.Value.Post = p.From, p.To, p.Post // a missing row lacks them
				rows[at[j]] = r
			}
		}
	}
	return rows
}

// Differences reads both rows of each edge and returns those that differ, in the
// order of the keys.
func Differences(ctx context.Context, store Edges, keys []Key) ([]Finding, error) {
	var found []Finding
	for i, r := range readBoth(ctx, store, keys) {
		if r.Err != nil {
			return nil, r.Err
		}
		if f, differ := compare(keys[i].Side, r.Value); differ {
			found = append(found, f)
		}
	}
	return found, nil
}
