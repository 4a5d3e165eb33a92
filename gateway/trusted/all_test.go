package trusted_test

import (
	"testing"

	"kith/gateway/trusted"
	"kith/graph/limits"
)

// Several sources work as one: each document is known, and a change of any source is seen.
func TestAll(t *testing.T) {
	t.Parallel()
	at := folder(t, map[string]string{"a.json": `{"a": "{ hello }"}`})
	all := trusted.All{at, trusted.Manifest{"b": "{ add(n: 2) }"}}
	documents, err := trusted.Load(t.Context(), all, schema, limits.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, ok := documents.Text(id); !ok {
			t.Errorf("%s is not known", id)
		}
	}
	before, err := all.Stamp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(at), "c.json", `{"c": "{ hello }"}`)
	if after, err := all.Stamp(t.Context()); err != nil || after == before {
		t.Errorf("the stamp stays %q, %v", after, err)
	}
	if _, err := trusted.Load(t.Context(), trusted.All{at, trusted.Manifest{"a": "{ add(n: 2) }"}}, schema, limits.Limits{}); err == nil {
		t.Error("one id stands for two texts")
	}
	if _, err := (trusted.All{at, trusted.Folder(string(at) + " is gone")}).Stamp(t.Context()); err == nil {
		t.Error("a folder that is gone has a stamp")
	}
}
