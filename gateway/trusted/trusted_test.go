package trusted_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/trusted"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { hello: String add(n: Int): Int }`})

var schemas = selections.Schemas{Schema: &graphql.ExecutableSchemaMock{SchemaFunc: func() *ast.Schema { return schema }}}

// folder makes a folder of files.
func folder(t *testing.T, files map[string]string) trusted.Folder {
	t.Helper()
	at := t.TempDir()
	for name, content := range files {
		write(t, at, name, content)
	}
	return trusted.Folder(at)
}

func sha(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// Manifests are read as the tools write them. A document is found by the id in its manifest, and by its hash,
// with or without the prefix of the specification.
func TestManifests(t *testing.T) {
	relay, apollo, codegen, file := "query A { hello }", "query B { add(n: 1) }", "query C($n: Int) { add(n: $n) }", "query D { hello }\nfragment F on Query { hello }\n"
	file = strings.ReplaceAll(file, "{ hello }\nf", "{ ...F }\nf")
	documents, err := trusted.Load(folder(t, map[string]string{
		"relay/persisted.json":         fmt.Sprintf(`{"3b1a": %q}`, relay),
		"apollo/manifest.json":         fmt.Sprintf(`{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id": "ap-1", "name": "B", "type": "query", "body": %q}]}`, apollo),
		"web/persisted-documents.json": fmt.Sprintf(`{%q: %q, "sha256:%s": %q}`, sha(codegen), codegen, sha(codegen), codegen),
		"d.graphql":                    file, "README.md": "not one",
	}), schemas, limits.Limits{})
	must.OK(t, err)
	for id, want := range map[string]string{
		"3b1a": relay, "sha256:3b1a": relay, "ap-1": apollo, sha(codegen): codegen, "sha256:" + sha(codegen): codegen, sha(relay): relay, sha(file): file,
	} {
		got, ok := documents.Text(id)
		check.That(t, ok && got == want && documents.Has(got), "%s is %q (%v)", id, got, ok)
	}
	_, ok := documents.Text("3b1")
	check.That(t, !ok && !documents.Has("query A {hello}") && documents.Len() == 4, "%d documents", documents.Len())
	none := (*trusted.Documents)(nil)
	check.That(t, none.Len() == 0 && !none.Has("{ hello }"), "none has some")
}

// A document that cannot be answered is refused before the gateway starts. The error names its file and the document.
func TestManifestsThatAreRefused(t *testing.T) {
	many, err := json.Marshal(map[string]string{"a": "{ hello }", strings.Repeat("i", trusted.MaxID+1): "{ hello }"})
	must.OK(t, err)
	var ids []string
	for i := range 2 * trusted.MaxDocuments { // and the hash of their text
		ids = append(ids, fmt.Sprintf(`"%d": "{ hello }"`, i))
	}
	_, err = trusted.Load(folder(t, map[string]string{"a.json": "{" + strings.Join(ids[1:], ",") + "}"}), schemas, limits.Limits{})
	check.Is(t, "one less", err, nil)
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing":           {map[string]string{"README.md": ""}, []string{"no documents"}},
		"no JSON":           {map[string]string{"a.json": "{"}, []string{"a.json", "no manifest"}},
		"no texts":          {map[string]string{"a.json": `{"a": 1}`}, []string{"a.json", "no manifest"}},
		"another version":   {map[string]string{"a.json": `{"format": "apollo-persisted-query-manifest", "version": 2}`}, []string{"version 2"}},
		"another name":      {map[string]string{"a.json": `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"ID": "1", "Body": "{ hello }"}]}`}, []string{"a.json", "1 to 256 bytes"}},
		"a mistake":         {map[string]string{"a.json": `{"x1": "{\n  bye }"}`}, []string{"a.json", `"x1"`, "line 2", "bye"}},
		"no query":          {map[string]string{"a.graphql": "hello"}, []string{"a.graphql", "hello"}},
		"too deep":          {map[string]string{"a.json": `{"x": "` + strings.Repeat("{ a ", 40) + strings.Repeat("}", 40) + `"}`}, []string{"levels"}},
		"an id of two":      {map[string]string{"a.json": `{"x": "{ hello }"}`, "b.json": `{"x": "{ add }"}`}, []string{"b.json", "another text"}},
		"an id too long":    {map[string]string{"a.json": string(many)}, []string{"1 to 256 bytes"}},
		"an id of nothing":  {map[string]string{"a.json": `{"": "{ hello }"}`}, []string{"1 to 256 bytes"}},
		"ids without end":   {map[string]string{"a.json": "{" + strings.Join(ids, ",") + "}"}, []string{"a.json", "more than 20000"}},
		"only its fragment": {map[string]string{"a.graphql": "fragment F on Query { hello }"}, []string{"a.graphql"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trusted.Load(folder(t, tc.files), schemas, limits.Limits{})
			for _, part := range tc.want {
				check.That(t, err != nil && strings.Contains(err.Error(), part), "the error is %v, without %q", err, part)
			}
		})
	}
	_, err = trusted.Load(trusted.Folder(filepath.Join(t.TempDir(), "none")), schemas, limits.Limits{})
	check.That(t, err != nil, "a folder that is not there is read")
}
