package program_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

// TestReportsAsJSON: with the same flag, all commands with a report write it for programs, as one JSON value and nothing else.
func TestReportsAsJSON(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	edges := written(t, "edges.csv", "from,to\n1,2\n2,1\n")
	for _, c := range []struct{ command, want string }{
		{"migrate", `"version": `},
		{"import " + edges, `"edges": 2`},
		{"export " + filepath.Join(folder, "export"), `"digest": "`},
		{"reconcile full", `"findings": []`},
		{"reconcile incremental", `"findings": []`},
		{"shards status", `"buckets": 1024`},
	} {
		end := kithtest.Run(t, kithtest.Dir(folder), kithtest.Args(append(strings.Fields(c.command), "--output", "json")...))
		check.That(t, end.Code == 0 && json.Valid([]byte(end.Stdout)) && strings.Contains(end.Stdout, c.want), "%s: %+v, want %s", c.command, end, c.want)
	}
}
