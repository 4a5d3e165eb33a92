package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// Many pairs of few owners are one statement, and are answered like few pairs.
func TestManyEdgesOfFewOwnersAreOneStatement(t *testing.T) {
	onBothEngines(t, checkManyEdges)
}

func checkManyEdges(t *testing.T, location string) {
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: seen.record})
	must.OK(t, err)
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	var edges []storage.Edge
	for from := storage.UserID(1); from <= 30; from++ {
		for to := storage.UserID(1); to <= 900; to++ {
			if r.IntN(3) == 0 {
				edges = append(edges, storage.Edge{From: from, To: to + 100, Type: storage.EdgeType(r.IntN(2)), UpdateTime: storage.Micros(r.IntN(1e6))})
			}
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
	}
	want := map[storage.Pair]storage.Edge{}
	for _, e := range edges {
		want[e.Pair()] = e
	}
	for _, c := range []struct {
		owners, peers storage.UserID
		statements    int
	}{{1, 900, 1}, {1, 4000, 1}, {2, 500, 1}, {30, dense, 1}, {30, 600, 1}, {30, 1000, 2}} {
		var pairs []storage.Pair
		for to := range c.peers {
			for from := range c.owners { // not in the order of owners
				pairs = append(pairs, storage.Pair{From: from + 1, To: to + 101})
			}
		}
		seen.reset()
		for i, got := range storage.EdgeLookups[storage.Forward].Read(t.Context(), s, pairs...) {
			e, found := want[pairs[i]]
			must.That(t, got.Err == nil && got.Found == found && got.Value == e, "%d × %d: %+v is %+v, want %+v", c.owners, c.peers, pairs[i], got, e)
		}
		check.Equal(t, fmt.Sprintf("statements of %d × %d pairs", c.owners, c.peers), len(seen.all()), c.statements)
	}
}
