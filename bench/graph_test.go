package bench_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"kith/bench"
	"kith/files/importer"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

func text(t *testing.T, g *bench.Graph) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := g.WriteTo(&out)
	if err != nil || n != int64(out.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, out.Len(), err)
	}
	return out.Bytes()
}

// A graph must never change, otherwise figures of different days could not be compared.
func TestGraphIsTheSameAlways(t *testing.T) {
	const want = "807b9b9d6377dd699565754e1974924559c40f1862fd8165b84a43d7b89bc825"
	if got := fmt.Sprintf("%x", sha256.Sum256(text(t, bench.NewGraph(1000, 42)))); got != want {
		t.Errorf("the graph of 1,000 users and seed 42 is another: SHA-256 %s, was %s", got, want)
	}
	if bytes.Equal(text(t, bench.NewGraph(1000, 42)), text(t, bench.NewGraph(1000, 43))) {
		t.Error("two seeds give one graph")
	}
}

func TestGraphIsSkewedAsSocialGraphsAre(t *testing.T) {
	const users = 10_000
	edges, near := 0, 0
	followers := make([]int, users+1)
	seen := map[storage.Pair]bool{}
	for e := range bench.NewGraph(users, 42).Edges() {
		switch {
		case e.From < 1 || e.From > users || e.To < 1 || e.To > users || e.From == e.To:
			t.Fatalf("edge %v", e)
		case seen[e.Pair()]:
			t.Fatalf("edge %v comes twice", e)
		}
		seen[e.Pair()] = true
		edges++
		followers[e.To]++
		if (e.From-1)/bench.Community == (e.To-1)/bench.Community {
			near++
		}
	}
	if edges < 47*users || edges > 53*users {
		t.Errorf("%d users have %d follows, want about 50 each", users, edges)
	}
	if share := float64(near) / float64(edges); share < 0.3 {
		t.Errorf("%.2f of all follows are within communities, want 0.3 and more", share)
	}
	for i, want := range []float64{0.64, 0.52, 0.46, 0.42} {
		if got := float64(followers[i+1]) / users; math.Abs(got-want) > 0.02 {
			t.Errorf("celebrity %d has %.2f of all users as followers, want %.2f", i+1, got, want)
		}
	}
	popular, few := 0, 0
	for _, n := range followers[bench.Celebrities+1:] {
		popular = max(popular, n)
		if n < 50 {
			few++
		}
	}
	if popular < 500 || popular > users/4 {
		t.Errorf("the most popular user who is no celebrity has %d followers", popular)
	}
	if few < users/2 {
		t.Errorf("only %d of %d users have fewer followers than the average", few, users)
	}
}

func TestSpreadIDs(t *testing.T) {
	g := bench.NewGraph(1000, 42)
	g.Spread = true
	last := storage.UserID(1 << 55)
	machines := map[storage.UserID]bool{}
	for n := 1; n <= g.Users; n++ {
		id := g.ID(n)
		if id <= last {
			t.Fatalf("user %d has id %d, the one before %d", n, id, last)
		}
		last = id
		machines[id&0xffff] = true
	}
	if len(machines) < 2 {
		t.Error("all ids are of one machine")
	}
}

func TestGraphIsImported(t *testing.T) {
	for _, spread := range []bool{false, true} {
		g := bench.NewGraph(500, 42)
		g.Spread = spread
		file := filepath.Join(t.TempDir(), "graph.tsv")
		writeGraph(t, g, file)
		store := oracle.New()
		report, err := importer.Run(context.Background(), store, importer.Config{Files: []string{file}})
		if err != nil || report.Edges != report.Lines || report.UsersMade != int64(g.Users) {
			t.Fatalf("spread %v: import says %+v, %v", spread, report, err)
		}
		for e := range g.Edges() {
			if got := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, e.Pair()); got[0].Value != e {
				t.Fatalf("spread %v: %+v is stored as %+v", spread, e, got[0])
			}
			break
		}
	}
}
