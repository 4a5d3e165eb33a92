package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/maypok86/otter/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/trusted"
	"kith/graph/apierr"
	"kith/graph/selections"
)

// Sizes of the caches. Queries are held as text and as parsed document, which
// was measured at 30 times the text usually and 77 times at worst.
const (
	queryCacheEntries   = 2_000
	queryCacheBytes     = 64 << 20
	documentBytesFactor = 80

	persistedEntries = 2_000
	persistedBytes   = 8 << 20
	maxPersisted     = 32 << 10 // of one: a client that sends a longer text can send it again
)

// documents are the queries that have been parsed and validated, by their text, with what has been
// derived from them since.
type documents struct {
	*cache[*document]
	trusted    *trusted.Documents // have been parsed and validated already
	isOperator func(context.Context) bool
}

// document is one query text that is valid.
type document struct {
	parsed    *ast.QueryDocument
	operators bool            // only operators may ask it
	memo      selections.Memo // it is dropped with the document
}

func newDocuments(known *trusted.Documents, isOperator func(context.Context) bool) documents {
	return documents{newCache(queryCacheEntries, queryCacheBytes, queryCacheBytes/8, func(text string, _ *document) int {
		return len(text) * documentBytesFactor
	}), known, isOperator}
}

// of returns a text's document; nil if it is neither kept nor trusted, or if the caller would have to be an operator.
func (d documents) of(ctx context.Context, text string) *document {
	found, ok := d.Get(ctx, text)
	if !ok {
		known, operators := d.trusted.Parsed(text)
		if known == nil {
			return nil
		}
		found = &document{parsed: known, operators: operators}
		d.Add(ctx, text, found)
	}
	if found.operators && !d.isOperator(ctx) {
		return nil
	}
	return found
}

// mostLogged is how many texts are remembered as logged; further ones are not logged.
const mostLogged = 1000

// registered lets clients send something shorter than a query's text: the id of a trusted document, or the
// hash of a text that the server has seen. It also finds texts that are not trusted.
type registered struct {
	trusted *trusted.Documents
	only    OnlyTrusted
	metrics *Metrics
	logged  *onceLogger
	apq     extension.AutomaticPersistedQuery
}

func newRegistered(cfg Config) *registered {
	return &registered{
		trusted: cfg.Trusted, only: cfg.OnlyTrusted, metrics: cfg.Metrics, logged: newOnceLogger(cfg.Logger, mostLogged),
		apq: extension.AutomaticPersistedQuery{
			Cache: newCache(persistedEntries, persistedBytes, maxPersisted, func(hash, text string) int { return len(hash) + len(text) }),
		},
	}
}

// resolve puts the text of a trusted document in for its id.
func (r *registered) resolve(params *graphql.RawParams) error {
	id, has := params.Extensions[parameterDocument].(string)
	if has {
		if params.Query != "" {
			return apierr.MalformedRequest.Error("send query or documentId, not both")
		}
		text, ok := r.trusted.Text(id)
		if !ok {
			return apierr.DocumentNotFound.Error("there is no document with this id")
		}
		delete(params.Extensions, parameterDocument)
		params.Query = text
		return nil
	}
	if persisted, ok := params.Extensions[extensionPersisted].(map[string]any); ok && r.trusted.Len() > 0 { // as Apollo's clients name documents of a manifest
		hash, _ := persisted["sha256Hash"].(string)
		if text, ok := r.trusted.Text(hash); ok && (params.Query == "" || params.Query == text) {
			delete(params.Extensions, extensionPersisted)
			params.Query = text
		}
	}
	return nil
}

// find finds the text of a query. gqlgen gives an unknown hash an error of its own kind, and no other error has one.
func (r *registered) find(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := r.resolve(params); err != nil {
		return gqlerror.Wrap(err)
	}
	if params.Query == "" || r.only != TrustKnown || r.trusted.Has(params.Query) { // a text that is refused is not kept by its hash
		if err := r.apq.MutateOperationParameters(ctx, params); err != nil && err.Extensions["code"] == nil {
			return gqlerror.Wrap(apierr.MalformedRequest.Error("%s", err.Message))
		} else if err != nil {
			return err
		}
	}
	return gqlerror.Wrap(r.check(params.Query, params.OperationName))
}

// check counts a text that is not trusted. If the text is refused, it returns an error that says so. A text that was answered
// before may no longer be.
func (r *registered) check(text, operation string) error {
	if r.only != TrustKnown && r.only != TrustLog || r.trusted.Has(text) {
		return nil
	}
	if r.only == TrustKnown {
		r.metrics.foreign.WithLabelValues("refused").Inc()
		return apierr.DocumentsOnly.Error("this server answers registered documents only: send a documentId")
	}
	r.metrics.foreign.WithLabelValues("answered").Inc()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	r.logged.warn(hash, "a document is not trusted", "sha256", hash, "operation", apierr.Shortened(operation, maxMessage))
	return nil
}

// cache keeps the values used most, bounded both in number and in size: a bound
// on the number alone would let a thousand long queries fill the memory. It is a
// [graphql.Cache].
type cache[V any] struct {
	entries *otter.Cache[string, V]
	largest int
	sizeOf  func(key string, value V) int
}

// newCache makes a cache for values up to the largest size. Each value counts as at least the size of which maxEntries fit, which
// bounds the number of values.
func newCache[V any](maxEntries, maxSize, largest int, sizeOf func(string, V) int) *cache[V] {
	return &cache[V]{
		entries: otter.Must(&otter.Options[string, V]{
			MaximumWeight: uint64(maxSize),
			Weigher:       func(key string, value V) uint32 { return uint32(max(sizeOf(key, value), maxSize/maxEntries)) },
		}),
		largest: largest,
		sizeOf:  sizeOf,
	}
}

// Get returns the value of a key.
func (c *cache[V]) Get(_ context.Context, key string) (V, bool) { return c.entries.GetIfPresent(key) }

// Add puts a value in, and drops the values used least. A value that is too large is not kept.
func (c *cache[V]) Add(_ context.Context, key string, value V) {
	if c.sizeOf(key, value) <= c.largest {
		c.entries.Set(key, value)
	}
}
