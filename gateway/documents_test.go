package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/generated"
	"kith/graph/limits"
)

// If a document is forgotten, everything derived from it is forgotten, too.
func TestDocumentsAreForgottenWhole(t *testing.T) {
	d, ctx := newDocuments(nil, nil), context.Background()
	parsed := &ast.QueryDocument{}
	d.Add(ctx, "first", &document{parsed: parsed})
	d.of(ctx, "first").memo.Put("plan", nil, 1)
	for i := range 2 * queryCacheEntries { // used as often as the first one
		for range 10 {
			d.Add(ctx, fmt.Sprint(i), &document{parsed: &ast.QueryDocument{}})
			d.of(ctx, fmt.Sprint(i))
		}
	}
	d.entries.CleanUp()
	if d.of(ctx, "first") != nil {
		t.Error("a document that was not used for long is kept")
	}
	if _, ok := d.Get(ctx, "first"); ok {
		t.Error("its text is known")
	}
	again := d.of(ctx, "first")
	for ; again == nil; again = d.of(ctx, "first") { // a text that is asked for often is admitted in the end
		d.Add(ctx, "first", &document{parsed: parsed})
	}
	if _, ok := again.memo.Get("plan", nil); ok {
		t.Error("a plan has outlived its document")
	}
	long := strings.Repeat("x", queryCacheBytes/documentBytesFactor/8+1)
	d.Add(ctx, long, &document{parsed: parsed})
	if d.of(ctx, long) != nil {
		t.Error("a document is kept that takes more than an eighth of the cache")
	}
}

// TestKnownTextsAreNotCheckedAgain: a text in the cache passes, whatever its shape.
func TestKnownTextsAreNotCheckedAgain(t *testing.T) {
	const query = "{ viewer { user { id name handle } } }"
	s := newServer(Config{Schema: generated.NewExecutableSchema(generated.Config{}), Limits: limits.Limits{Tokens: 3}}.withDefaults(), nil)
	parsed, err := gqlparser.LoadQueryWithRules(s.Schema.Schema(), query, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := &document{parsed: parsed}
	s.documents.Add(t.Context(), query, known)
	if _, document, _, errs := s.create(t.Context(), &graphql.RawParams{Query: query}); errs != nil || document != known {
		t.Errorf("known: %v", errs)
	}
	if _, _, _, errs := s.create(t.Context(), &graphql.RawParams{Query: query + " "}); errs == nil {
		t.Error("unknown: let through")
	}
}
