package program_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"kith/internal/expected"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
)

// TestGraphs imports follow graphs with the command, compares every row with the file, and compares
// answers that were computed separately with those over GraphQL.
func TestGraphs(t *testing.T) {
	t.Parallel()
	importedGraph(t, testgraph.Generate(t, testgraph.Tiny))
}

// TestLongGraphs is the same with a real graph, and with graphs of more than a million edges.
func TestLongGraphs(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	t.Run("wiki-vote", func(t *testing.T) { importedGraph(t, testgraph.Real(t, "wiki-vote")) })
	testgraph.Each(t, testgraph.Large, "ego-twitter", importedGraph)
}

func importedGraph(t *testing.T, g testgraph.Graph) {
	graph := g.Edges(t)
	answers := expected.Of(t, g)

	stores := map[string]func(testing.TB) []database{
		"sqlite":  func(t testing.TB) []database { return newSQLite(t, 1) },
		"mariadb": func(t testing.TB) []database { return newMariaDB(t, 4) },
	}
	for store, make := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			shards := make(t)
			importGraph(t, g.File, shards, len(graph), 0)
			holdsGraph(t, graph, shards...)

			answers.Hold(t, kithtest.Start(t, kithtest.Args("--store", location(shards...))))

			importGraph(t, g.File, shards, 0, len(graph))
			holdsGraph(t, graph, shards...)
		})
	}
}

// importGraph imports a file, and checks how many of its edges were new.
func importGraph(t *testing.T, path string, shards []database, edges, existed int) {
	t.Helper()
	end := kithtest.Run(t, kithtest.Args("import", "--store", location(shards...), path))
	want := fmt.Sprintf(`^imported %s edges and [\d,]+ users in [\d.]+ s \(([\d,]+) edges/s\)\n  duplicates +0\n  existed +%s( .*)?\n  self-follows +0\n  malformed +0\n$`,
		thousands(edges), thousands(existed))
	found := regexp.MustCompile(want).FindStringSubmatch(end.Stdout)
	must.That(t, end.Code == 0 && found != nil, "imported: %+v", end)
	t.Logf("%s new edges, %s that existed: %s edges/s, the whole command in %s", thousands(edges), thousands(existed), found[1], end.Took.Round(time.Millisecond))
}
