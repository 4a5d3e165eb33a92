package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/trusted"
	"kith/graph/selections"
)

// documents are the queries that have been parsed and validated, by their text, with what has been
// derived from them since. It is gqlgen's query cache.
type documents struct {
	*cache[*document]
	trusted *trusted.Documents // have been parsed and validated already
}

// document is one query text that is valid.
type document struct {
	parsed *ast.QueryDocument
	memo   selections.Memo // it is dropped with the document
}

var _ graphql.Cache[*ast.QueryDocument] = documents{}

func newDocuments(known *trusted.Documents) documents {
	return documents{newCache(queryCacheEntries, queryCacheBytes, func(text string, _ *document) int {
		return len(text) * documentBytesFactor
	}), known}
}

// Get implements [graphql.Cache].
func (d documents) Get(ctx context.Context, text string) (*ast.QueryDocument, bool) {
	found := d.of(ctx, text)
	if found == nil {
		return nil, false
	}
	return found.parsed, true
}

// Add implements [graphql.Cache]. The document is new and has been validated.
func (d documents) Add(ctx context.Context, text string, parsed *ast.QueryDocument) {
	d.cache.Add(ctx, text, &document{parsed: parsed})
}

// of returns a text's document; nil if it is neither kept nor trusted.
func (d documents) of(ctx context.Context, text string) *document {
	found, ok := d.cache.Get(ctx, text)
	if ok {
		return found
	}
	known := d.trusted.Parsed(text)
	if known == nil {
		return nil
	}
	found = &document{parsed: known}
	d.cache.Add(ctx, text, found)
	return found
}
