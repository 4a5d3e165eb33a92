package social

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A step of a deletion has rows of several tables, and never more rows than it may end at a time.
func TestAStepOfADeletionIsBounded(t *testing.T) {
	store := oracle.New()
	const each = eraseStep*3/4 + 1
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		edges := make([]storage.Edge, each)
		for i := range edges {
			edges[i] = side.Pair(1, storage.UserID(i+10)).Edge(storage.Following, 1)
		}
		store.Apply(t.Context(), side, edges, storage.IfNewer)
	}
	relations := NewRelations(Relations{Store: store})
	var queries []storage.RowsQuery
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		queries = append(queries, storage.RowsQuery{Side: side, Owner: 1, Limit: eraseStep})
	}
	var steps []int
	seen := map[storage.Row]bool{}
	for len(queries) > 0 {
		rows, further, err := relations.nextRows(t.Context(), queries)
		must.OK(t, err)
		for _, row := range rows {
			seen[row] = true
		}
		steps, queries = append(steps, len(rows)), further
	}
	check.Equal(t, "rows of each step", steps, []int{eraseStep, 2*each - eraseStep})
	check.Equal(t, "different rows", len(seen), 2*each)
}
