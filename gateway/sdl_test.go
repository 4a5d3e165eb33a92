package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

// The schema is a file for code generators. It is transferred again only if it has changed.
func TestTheSchemaIsAFile(t *testing.T) {
	s := serve(t, gateway.Config{})
	got := s.operators("/schema.graphql")
	_, err := gqlparser.LoadSchema(&ast.Source{Input: got.text})
	must.That(t, err == nil && got.status == 200 && strings.Contains(got.text, "type Query"), "%d %v %s", got.status, err, got.text)
	check.Equal(t, "the type", got.header.Get("Content-Type"), "application/graphql; charset=utf-8")
	check.Equal(t, "asked again", s.operators("/schema.graphql", "If-None-Match", got.header.Get("ETag")).status, http.StatusNotModified)
	check.Equal(t, "a hidden schema", serve(t, gateway.Config{HideSchema: true}).operators("/schema.graphql").status, http.StatusNotFound)
}
