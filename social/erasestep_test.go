package social

import (
	"context"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
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

// away is a store that cannot end the edges of users up to one.
type away struct {
	storage.Store
	upTo storage.UserID
}

func (s away) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	results := s.Store.EndEdges(ctx, user, rows, at)
	for i, r := range rows {
		if r.Side.Peer(r.Edge.Pair()) <= s.upTo {
			s.Store.Apply(ctx, r.Side, []storage.Edge{r.Edge.Pair().Edge(r.Edge.Type, results[i].Value.UpdateTime+1)}, storage.IfNewer)
			results[i] = storage.Result[storage.Edge]{Err: storage.ErrUnavailable}
		}
	}
	return results
}

// More rows than a step takes that cannot end now do not keep the others from ending.
func TestADeletionPassesOverUsersWhoAreAway(t *testing.T) {
	store := oracle.New()
	const first, last = 10, 10 + 3*eraseStep
	for id := storage.UserID(first); id <= last; id++ {
		store.Apply(t.Context(), storage.Inverse, []storage.Edge{{From: id, To: 1, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	}
	upTo := storage.UserID(first + eraseStep + 1)
	err := NewRelations(Relations{Store: away{store, upTo}, Redundancy: alone{}}).EndAll(t.Context(), 1)
	check.Is(t, "the end", err, storage.ErrUnavailable)
	left := storage.RowLookups.Read(t.Context(), store, storage.RowsQuery{Side: storage.Inverse, Owner: 1, Limit: last})[0].Value
	check.Equal(t, "rows that are left", len(left), int(upTo-first+1))
}

// Edges of declared kinds come with those that have ended, of which pages may have nothing else.
func TestADeletionPassesOverWhatHasEnded(t *testing.T) {
	store := oracle.New()
	const ended = 2*eraseStep + 7
	pairs := make([]storage.Pair, ended+3)
	for i := range pairs {
		pairs[i] = storage.Pair{From: 1, To: storage.UserID(10 + i), Item: 101}
		for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
			must.All(t, store.Apply(t.Context(), side, []storage.Edge{pairs[i].Edge(storage.EdgeType(i/ended), 5)}, storage.IfNewer))
		}
	}
	must.OK(t, NewRelations(Relations{Store: store, Redundancy: alone{}}).EndAll(t.Context(), 1))
	for i, r := range storage.EdgeLookups[storage.RelationInbox].Read(t.Context(), store, pairs...) {
		check.That(t, r.Found && r.Value.Type == storage.None && (r.Value.UpdateTime > 5) == (i >= ended), "row %d: %+v", i, r)
	}
}

// A deletion for which there is never time for all of it goes on where it was.
func TestADeletionGoesOnWhereItWas(t *testing.T) {
	const ended, each = 20 * eraseStep, 6
	store := oracle.New()
	edges := make([]storage.Edge, ended)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(10 + i), To: 1, Item: 101, UpdateTime: 5}
	}
	edges[ended-1].Type = storage.Related
	must.All(t, store.Apply(t.Context(), storage.RelationInbox, edges, storage.IfNewer))
	slow, reads, late := double.Of(store), 0, func() {}
	double.Before(slow, func(ctx context.Context, _ []storage.RowsQuery) error {
		if reads++; reads%each == 0 {
			late()
		}
		return ctx.Err()
	}, storage.RowLookups)
	relations := NewRelations(Relations{Store: slow, Redundancy: alone{}})
	err := context.Canceled
	for n := 0; err != nil && n < 3*ended/eraseStep/each; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		late = cancel
		err = relations.EndAll(ctx, 1)
		cancel()
	}
	must.OK(t, err)
	row := storage.EdgeLookups[storage.RelationInbox].Read(t.Context(), store, edges[ended-1].Pair())[0]
	check.Equal(t, "the last row", row.Value.Type, storage.None)
}

// alone is a store's own redundancy.
type alone struct{}

func (alone) Inline() bool                                       { return true }
func (alone) Propagate(context.Context, []storage.Written) error { return nil }
