package program_test

import (
	"strings"
	"testing"

	"kith/internal/kithtest"
)

// TestFederationIsASetting: without it, no query can name the fields of routers, and introspection does not show them.
func TestFederationIsASetting(t *testing.T) {
	const fields = `{ entity: __type(name: "_Entity") { name } query: __type(name: "Query") { fields { name } } }`
	for _, federation := range []bool{false, true} {
		arguments := []string{"--store", "sqlite:" + t.TempDir() + "/kith.db"}
		if federation {
			arguments = append(arguments, "--federation")
		}
		g := kithtest.Start(t, kithtest.Args(arguments...))
		for query, shown := range map[string]string{fields: `"_entities"`, `{ _entities(representations: []) { __typename } }`: `"_entities":[]`, `{ _service { sdl } }`: "@key"} {
			if text := textAs(t, g, "", query); strings.Contains(text, shown) != federation {
				t.Errorf("federation %t: %s: %.300s", federation, query, text)
			}
		}
	}
}
