package program_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/kithtest"
)

// A front end registers its documents in the store. The gateways that serve the store answer them soon
// afterwards, and soon stop answering documents whose names are removed. Registering or removing them again
// changes nothing. Documents that do not fit the schema are not written.
func TestDocumentsInTheStore(t *testing.T) {
	t.Parallel()
	for engine, shards := range map[string][]database{"SQLite": newSQLite(t, 2), "MariaDB": newMariaDB(t, 2)} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			store := kithtest.Args("--store", location(shards...), "--redundancy", "sync")
			run := func(want int, says string, args ...string) {
				t.Helper()
				end := kithtest.Run(t, kithtest.Args(append([]string{"documents"}, args...)...), store)
				if end.Code != want || !strings.Contains(end.Stdout+end.Stderr, says) {
					t.Errorf("kith documents %v: %+v, want %q", args, end, says)
				}
			}
			folder := t.TempDir()
			file := func(name, content string) string {
				t.Helper()
				path := filepath.Join(folder, name)
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			const first, second = "query One { users(ids: []) { id } }", "query Two { viewer { id } }"
			one := file("one.json", fmt.Sprintf(`{"1": %q, "2": %q}`, first, second))
			two := file("two.graphql", second)
			g := kithtest.Start(t, kithtest.Args("--trusted-documents=store", "--only-trusted=on", "--no-app"), store)
			answers := func(id string) bool {
				t.Helper()
				status, text := g.Get(t, "/graphql?documentId="+id)
				if status != 200 || strings.Contains(text, `"errors"`) != strings.Contains(text, "PERSISTED_QUERY_NOT_FOUND") {
					t.Fatalf("%s: %d %s", id, status, text)
				}
				return !strings.Contains(text, `"errors"`)
			}
			hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(second)))
			if answers("1") {
				t.Error("it is known before")
			}
			run(0, "web-1: 2 documents, 2 of them new", "add", "web-1", one)
			run(0, "web-1: 2 documents, 0 of them new", "add", "web-1", one)
			run(0, "web-2: 1 documents, 1 of them new", "add", "web-2", two)
			run(1, "another text", "add", "web-3", file("three.json", `{"1": "{ viewer { id } }"}`))
			run(1, "nosuch", "add", "web-3", file("four.json", `{"9": "{ nosuch }"}`))
			run(1, "printable", "add", "web 3", one)
			run(1, "no such file", "add", "web-3", filepath.Join(folder, "absent.json"))
			g.Until(t, "it knows them", func() bool { return answers("1") && answers("2") && answers(hash) })
			if _, text := g.Get(t, "/metrics"); !strings.Contains(text, "\nkith_trusted_documents 2\n") {
				t.Errorf("the metrics say otherwise")
			}

			end := kithtest.Run(t, kithtest.Args("documents", "list", "--output=json"), store)
			var list []struct {
				Name      string
				Documents int
			}
			if err := json.Unmarshal([]byte(end.Stdout), &list); err != nil || fmt.Sprint(list) != "[{web-1 2} {web-2 1}]" {
				t.Errorf("%+v: %v", end, list)
			}
			run(0, "web-1 is removed", "remove", "web-1")
			run(0, "there is no web-1", "remove", "web-1")
			g.Until(t, "it knows them no more", func() bool { return !answers("1") && !answers("2") })
			if !answers(hash) {
				t.Error("what another name has is gone, too")
			}
			late := kithtest.Start(t, kithtest.Args("--trusted-documents=store", "--only-trusted=on"), store)
			if status, text := late.Get(t, "/graphql?documentId="+hash); status != 200 || strings.Contains(text, `"errors"`) {
				t.Errorf("one that starts later: %d %s", status, text)
			}
		})
	}
}
