package gateway

import (
	"context"
	"sync"
	"sync/atomic"

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

	mu         sync.Mutex
	operations atomic.Pointer[map[string]*known] // by the name that clients gave; replaced as a whole
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

// operation returns one of the document's operations that has been executed before, by the
// name under which a client asked for it; nil if there is none.
func (d *document) operation(name string) *known {
	if all := d.operations.Load(); all != nil {
		return (*all)[name]
	}
	return nil
}

// keep remembers an operation. There are no more than the document has: each is kept under its
// name, and an only operation also without a name.
func (d *document) keep(name string, k *known) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]*known{name: k}
	if old := d.operations.Load(); old != nil {
		for name, k := range *old {
			all[name] = k
		}
	}
	d.operations.Store(&all)
}
