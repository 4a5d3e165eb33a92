package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
)

// The schema is a file for code generators. It is transferred again only if it has changed.
func TestTheSchemaIsAFile(t *testing.T) {
	s := serve(t, gateway.Config{})
	got := s.operators("/schema.graphql")
	if _, err := gqlparser.LoadSchema(&ast.Source{Input: got.text}); err != nil || got.status != 200 || !strings.Contains(got.text, "type Query") {
		t.Fatalf("%d %v %s", got.status, err, got.text)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/graphql; charset=utf-8" {
		t.Errorf("it is %s", kind)
	}
	if again := s.operators("/schema.graphql", "If-None-Match", got.header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("asked again, %d", again.status)
	}
	if got := serve(t, gateway.Config{HideSchema: true}).operators("/schema.graphql"); got.status != http.StatusNotFound {
		t.Errorf("a hidden schema: %d", got.status)
	}
}
