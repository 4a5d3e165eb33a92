package documents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

// If a document is forgotten, everything derived from it is forgotten, too.
func TestDocumentsAreForgottenWhole(t *testing.T) {
	d, ctx := New(Config{}), context.Background()
	parsed := &ast.QueryDocument{}
	d.Add(ctx, "first", valid(parsed))
	d.Known(ctx, "first").Memo.Put("plan", nil, 1)
	for i := range 2 * queryCacheEntries { // used as often as the first one
		for range 10 {
			d.Add(ctx, fmt.Sprint(i), valid(&ast.QueryDocument{}))
			d.Known(ctx, fmt.Sprint(i))
		}
	}
	d.entries.CleanUp()
	check.That(t, d.Known(ctx, "first") == nil, "a document that was not used for long is kept")
	_, ok := d.Get(ctx, "first")
	check.That(t, !ok, "its text is known")
	again := d.Known(ctx, "first")
	for ; again == nil; again = d.Known(ctx, "first") { // a text that is asked for often is admitted in the end
		d.Add(ctx, "first", valid(parsed))
	}
	_, ok = again.Memo.Get("plan", nil)
	check.That(t, !ok, "a plan has outlived its document")
	long := strings.Repeat("x", queryCacheBytes/documentBytesFactor/8+1)
	d.Add(ctx, long, valid(parsed))
	check.That(t, d.Known(ctx, long) == nil, "a document is kept that takes more than an eighth of the cache")
}

// TestKnownTextsAreNotCheckedAgain: a text in the cache passes, whatever its shape.
func TestKnownTextsAreNotCheckedAgain(t *testing.T) {
	const query = "{ viewer { user { id name handle } } }"
	schema := generated.NewExecutableSchema(generated.Config{})
	d := New(Config{Schemas: selections.Schemas{Schema: schema}, IsOperator: func(context.Context) bool { return false }, Limits: limits.Limits{Tokens: 3}})
	parsed, err := gqlparser.LoadQueryWithRules(schema.Schema(), query, nil)
	must.That(t, err == nil, "%v", err)
	kept := valid(parsed)
	d.Add(t.Context(), query, kept)
	check.That(t, d.Known(t.Context(), query) == kept, "it is not known")
	found := d.Known(t.Context(), query+" ")
	check.That(t, found == nil, "another one is known")
	_, errs := d.Parse(t.Context(), query+" ")
	check.That(t, errs != nil, "unknown: let through")
}

func valid(parsed *ast.QueryDocument) *Document {
	return &Document{Document: trusted.Document{Parsed: parsed}}
}
