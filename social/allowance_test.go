package social

import (
	"context"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Set answers of one request examine one budget together, however many they are. What it does not suffice for says that it is incomplete, and
// is answered in the next request.
func TestAnswersOfARequestShareItsBudget(t *testing.T) {
	const stars, fans, budget = 40, 3000, 20_000
	store := oracle.New()
	var edges []storage.Edge
	for to := storage.UserID(1); to <= stars; to++ {
		for from := storage.UserID(100); from < 100+fans; from++ {
			edges = append(edges, storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: storage.Micros(from)})
		}
		edges = append(edges, storage.Edge{From: to, To: 100 + to, Type: storage.Following, UpdateTime: 1})
	}
	for to := storage.UserID(1000); to < 100+fans; to++ {
		edges = append(edges, storage.Edge{From: 100, To: to, Type: storage.Following, UpdateTime: 1})
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	fansOf := func(id storage.UserID) List { return List{storage.Inverse, id} }
	for name, ask := range map[string]func(*Graph, storage.UserID) (complete bool, err error){
		"matches of two lists": func(g *Graph, id storage.UserID) (bool, error) {
			other := fansOf(id)
			p, err := g.Matches(t.Context(), MatchQuery{Base: List{storage.Forward, 100}, Other: other}, MatchMark{}, 10)
			return p.Complete, err
		},
		"who is on two lists": func(g *Graph, id storage.UserID) (bool, error) {
			p, err := g.People(t.Context(), PeopleQuery{Filter: Both(List{storage.Forward, 100}, fansOf(id)), First: 10})
			return p.Complete, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &countedRows{Answerer: store}
			g := New(counted, budget, nil)
			request, complete := new(Allowance), 0
			for id := storage.UserID(1); id <= stars; id++ {
				whole, err := ask(g.Within(request), id)
				must.OK(t, err)
				if whole {
					complete++
				}
			}
			check.Most(t, "rows that were read", counted.read, budget+stars*3*fewRows+3*fans)
			check.That(t, complete != 0 && complete != stars, "%d of %d are complete", complete, stars)
			whole, err := ask(g.Within(new(Allowance)), stars)
			check.That(t, err == nil && whole, "alone it is complete: %v, %v", whole, err)
		})
	}
}

// countedRows counts the rows that are read.
type countedRows struct {
	storage.Answerer
	read int
}

// counting counts the rows of what is read of some kinds.
func counting[K, V any](ctx context.Context, b *storage.Bundle, c *countedRows, rows func(V) int, kinds ...*storage.LookupKind[K, V]) {
	storage.SideLookups[K, V](kinds).Instead(ctx, b, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
		results := kinds[side].Read(ctx, c.Answerer, keys...)
		for _, r := range results {
			c.read += rows(r.Value)
		}
		return results
	})
}

func (c *countedRows) Bundle(ctx context.Context, b *storage.Bundle) {
	edges := func(list []storage.Edge) int { return len(list) }
	counting(ctx, b, c, func(list []storage.UserID) int { return len(list) }, storage.NeighbourLookups...)
	counting(ctx, b, c, edges, storage.PageLookups...)
	counting(ctx, b, c, edges, storage.RowLookups)
	counting(ctx, b, c, func(storage.Edge) int { return 1 }, storage.EdgeLookups...)
	c.Answerer.Bundle(ctx, b)
}
