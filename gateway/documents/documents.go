// Package documents is what clients ask: it reads the parameters of their requests, and finds the document that they mean by its text, by the
// hash of a text that was seen before, or by the id of a document that is trusted. A document is parsed and validated once.
package documents

import (
	"context"
	"log/slog"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/maypok86/otter/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/gateway/exchange"
	"kith/gateway/trusted"
	"kith/graph/apierr"
	"kith/graph/limits"
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

// mostLogged is how many texts are remembered as logged; further ones are not logged.
const mostLogged = 1000

// OnlyTrusted is what happens to texts that are not among the trusted documents.
type OnlyTrusted string

// The ways to treat them.
const (
	TrustAll   OnlyTrusted = "off" // they are answered; the default
	TrustLog   OnlyTrusted = "log" // they are answered, counted, and the hash of each is logged once
	TrustKnown OnlyTrusted = "on"  // they are refused
)

// Config is which documents are answered, and to whom.
type Config struct {
	Schemas    selections.Schemas
	IsOperator func(context.Context) bool
	Limits     limits.Limits
	Trusted    *trusted.Documents
	Only       OnlyTrusted
	Metrics    *exchange.Metrics
	Logger     *slog.Logger
}

// Documents are the queries that have been parsed and validated, by their text, with what has been
// derived from them since.
type Documents struct {
	Config
	*cache[*Document]
	texts  extension.AutomaticPersistedQuery // by their hashes
	logged exchange.Firsts
}

// Document is one query text that is valid.
type Document struct {
	trusted.Document
	Memo selections.Memo // it is dropped with the document
}

// Operation is what a request asks: one of the operations of a document, with what it may cost.
type Operation struct {
	*graphql.OperationContext
	Document *Document
	Cost     uint64
}

// New makes an empty cache.
func New(cfg Config) *Documents {
	return &Documents{
		Config: cfg,
		cache: newCache(queryCacheEntries, queryCacheBytes, queryCacheBytes/8, func(text string, _ *Document) int {
			return len(text) * documentBytesFactor
		}),
		texts: extension.AutomaticPersistedQuery{
			Cache: newCache(persistedEntries, persistedBytes, maxPersisted, func(hash, text string) int { return len(hash) + len(text) }),
		},
	}
}

// Known returns a text's document; nil if it is neither kept nor trusted, or if the caller would have to be an operator.
func (d *Documents) Known(ctx context.Context, text string) *Document {
	found, ok := d.Get(ctx, text)
	if !ok {
		known := d.Trusted.Parsed(text)
		if known.Parsed == nil {
			return nil
		}
		found = &Document{Document: known}
		d.Add(ctx, text, found)
	}
	if found.Operators && !d.IsOperator(ctx) {
		return nil
	}
	return found
}

// A Turn parses a text of so many bytes in its turn. It returns false if that does not come.
type Turn func(ctx context.Context, bytes int, parse func()) (ok bool)

// ErrBusy refuses a text whose turn has not come.
var ErrBusy = exchange.Busy(exchange.TooManyRequests).Err

// Parse returns the document of a text that is not known, which it parses and validates.
func (d *Documents) Parse(ctx context.Context, text string) (*Document, gqlerror.List) {
	parsed, errs := trusted.Validate(text, d.Limits, d.Schemas, d.IsOperator(ctx), quietRules)
	if errs != nil {
		return nil, errs
	}
	found := &Document{Document: parsed}
	d.Add(ctx, text, found)
	return found, nil
}

// resolve puts the text of a trusted document in for its id.
func (d *Documents) resolve(params *graphql.RawParams) error {
	id, has := params.Extensions[exchange.ParameterDocument].(string)
	if has {
		if params.Query != "" {
			return apierr.MalformedRequest.Error("send query or documentId, not both")
		}
		text, ok := d.Trusted.Text(id)
		if !ok {
			return apierr.DocumentNotFound.Error("there is no document with this id")
		}
		delete(params.Extensions, exchange.ParameterDocument)
		params.Query = text
		return nil
	}
	if persisted, ok := params.Extensions[exchange.ExtensionPersisted].(map[string]any); ok && d.Trusted.Len() > 0 { // as Apollo's clients name documents of a manifest
		hash, _ := persisted["sha256Hash"].(string)
		if text, ok := d.Trusted.Text(hash); ok && (params.Query == "" || params.Query == text) {
			delete(params.Extensions, exchange.ExtensionPersisted)
			params.Query = text
		}
	}
	return nil
}

// Find finds the text of a query that has something shorter: the id of a trusted document, or the hash of a text that the gateway has
// seen. It also finds texts that are not trusted. gqlgen gives an unknown hash an error of its own kind, and no other error has one.
func (d *Documents) Find(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := d.resolve(params); err != nil {
		return gqlerror.Wrap(err)
	}
	if params.Query == "" || d.Only != TrustKnown || d.Trusted.Has(params.Query) { // a text that is refused is not kept by its hash
		if err := d.texts.MutateOperationParameters(ctx, params); err != nil && err.Extensions["code"] == nil {
			return gqlerror.Wrap(apierr.MalformedRequest.Error("%s", err.Message))
		} else if err != nil {
			return err
		}
	}
	return gqlerror.Wrap(d.check(params.Query, params.OperationName))
}

// check counts a text that is not trusted. If the text is refused, it returns an error that says so. A text that was answered
// before may no longer be.
func (d *Documents) check(text, operation string) error {
	if d.Only != TrustKnown && d.Only != TrustLog || d.Trusted.Has(text) {
		return nil
	}
	if d.Only == TrustKnown {
		d.Metrics.Untrusted.WithLabelValues("refused").Inc()
		return apierr.DocumentsOnly.Error("this server answers registered documents only: send a documentId")
	}
	d.Metrics.Untrusted.WithLabelValues("answered").Inc()
	hash := trusted.HashOf(text)
	if _, first := d.logged.Among(hash, mostLogged); first {
		d.Logger.Warn("a document is not trusted", "sha256", hash, "operation", apierr.Shortened(operation, exchange.MaxMessage))
	}
	return nil
}

// quietRules are the rules of validation without suggestions, for which rules search the schema:
// these cost time in proportion to the names in the query, and show a schema that may be hidden.
var quietRules = func() *rules.Rules {
	set := rules.NewDefaultRules()
	for _, quiet := range []core.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
		rules.ScalarLeafsRuleWithoutSuggestions,
		rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		set.ReplaceRule(strings.TrimSuffix(quiet.Name, "WithoutSuggestions"), quiet.RuleFunc)
	}
	return set
}()

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
