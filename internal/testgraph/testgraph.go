// Package testgraph gives tests a follow graph as a file that `kith import` reads: always one that
// is generated from a seed, and a real one if its data set is at hand.
//
//	testgraph.Each(t, testgraph.Small, "wiki-vote", func(t *testing.T, g testgraph.Graph) {
//		…
//	})
package testgraph

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

// Edge says that From follows To.
type Edge struct{ From, To int64 }

// Graph is an edge list in a file: each edge once, and no user follows itself.
type Graph struct {
	Name      string // "generated", or the name of the data set without an ending
	File      string // gzipped text, "from to" a line
	Generated bool
}

// Each runs a test on a generated graph, and then on a real one, as subtests. If the data set is
// absent, the subtest of the real one is skipped.
func Each(t *testing.T, s Shape, real string, test func(t *testing.T, g Graph)) {
	t.Helper()
	t.Run("generated", func(t *testing.T) { test(t, Generate(t, s)) })
	t.Run(real, func(t *testing.T) { test(t, Real(t, real)) })
}

// Generate writes a graph of a shape to a file. Its file is removed when t ends.
func Generate(t testing.TB, s Shape) Graph {
	t.Helper()
	g := Graph{Name: "generated", File: filepath.Join(t.TempDir(), "generated.txt.gz"), Generated: true}
	file, err := os.Create(g.File)
	must.OK(t, err)
	packed := gzip.NewWriter(file)
	text := bufio.NewWriter(packed)
	for _, e := range s.Edges() {
		fmt.Fprintln(text, e.From, e.To)
	}
	for _, end := range []func() error{text.Flush, packed.Close, file.Close} {
		err := end()
		must.That(t, err == nil, "write %s: %v", g.File, err)
	}
	return g
}

// Real is a real graph, by the name of its data set without an ending. See [testenv.Data].
func Real(t testing.TB, name string) Graph {
	t.Helper()
	return Graph{Name: name, File: testenv.Data(t, name+".txt.gz")}
}

// Edges reads the file: the edges in the order of its lines.
func (g Graph) Edges(t testing.TB) (list []Edge) {
	t.Helper()
	file, err := os.Open(g.File)
	must.OK(t, err)
	defer file.Close()
	text, err := gzip.NewReader(file)
	must.OK(t, err)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		var e Edge
		if _, err := fmt.Sscan(lines.Text(), &e.From, &e.To); err != nil {
			t.Fatalf("%s: %q: %v", g.File, lines.Text(), err)
		}
		list = append(list, e)
	}
	err = lines.Err()
	must.That(t, err == nil, "%s: %v", g.File, err)
	return list
}
