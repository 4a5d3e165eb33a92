package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/maypok86/otter/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/gateway/trusted"
	"kith/graph/apierr"
	"kith/graph/limits"
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

// isTrusted reports whether a text is one of [Config.Trusted].
func (d documents) isTrusted(text string) bool { return d.trusted != nil && d.trusted.Has(text) }

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

// operations makes the operation of each request, in place of gqlgen's executor, which takes a text for a number among the
// variables, and refuses 2.0 as an Int.
type operations struct {
	documents  documents
	limit      *limits.Extension
	registered *registered

	schema          graphql.ExecutableSchema
	hidesSchema     bool
	recover         graphql.RecoverFunc
	aroundRootField graphql.RootFieldMiddleware
}

// create makes the operation of a request and returns its cost, or the reasons why there is none. The document is nil if it is too
// long to be kept.
func (o operations) create(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, *document, uint64, gqlerror.List) {
	op := &graphql.OperationContext{
		DisableIntrospection: o.hidesSchema, RecoverFunc: o.recover,
		ResolverMiddleware: refuseNulls, RootResolverMiddleware: o.aroundRootField,
		Stats: graphql.Stats{Read: params.ReadTime},
	}
	ctx = graphql.WithOperationContext(ctx, op)
	for _, fill := range []func(context.Context, *graphql.RawParams) *gqlerror.Error{
		o.registered.MutateOperationParameters, o.limit.MutateOperationParameters,
	} {
		if err := fill(ctx, params); err != nil {
			return op, nil, 0, gqlerror.List{err}
		}
	}
	op.RawQuery, op.OperationName, op.Extensions, op.Headers = params.Query, params.OperationName, params.Extensions, params.Headers
	known := o.documents.of(ctx, op.RawQuery)
	if known == nil {
		var errs gqlerror.List
		if op.Doc, errs = o.parse(op.RawQuery); errs != nil {
			return op, nil, 0, errs
		}
		op.Stats.Validation.End = graphql.Now()
		o.documents.Add(ctx, op.RawQuery, op.Doc)
		known = o.documents.of(ctx, op.RawQuery)
	}
	if known != nil {
		op.Doc = known.parsed
	}
	cost, err := o.choose(op, params.Variables)
	if err != nil {
		return op, nil, 0, gqlerror.List{gqlerror.Wrap(err)}
	}
	return op, known, cost, nil
}

// parse parses and validates a text.
func (o operations) parse(text string) (*ast.QueryDocument, gqlerror.List) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, o.limit.Tokens())
	if err != nil {
		return nil, gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
	}
	errs := gqlerror.List{gqlerror.Wrap(apierr.BadInput("no operation provided"))}
	if len(doc.Operations) > 0 {
		errs = validator.ValidateWithRules(o.schema.Schema(), doc, quietRules())
	}
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if errs == nil {
		if err := selections.Settle(doc); err != nil {
			errs = gqlerror.List{err}
		}
	}
	return doc, errs
}

// choose finds the operation in its document, its variables and its cost.
func (o operations) choose(op *graphql.OperationContext, given map[string]any) (cost uint64, err error) {
	if op.Operation = op.Doc.Operations.ForName(op.OperationName); op.Operation == nil {
		return 0, apierr.BadInput("operation %s not found", op.OperationName)
	}
	if op.Variables, err = selections.Variables(o.schema.Schema(), op.Operation, given); err != nil {
		return 0, err
	}
	if err := selections.CheckRoot(op); err != nil {
		return 0, err
	}
	return o.limit.Cost(op)
}

// knows reports whether a query was parsed and validated before.
func (o operations) knows(ctx context.Context, query string) bool {
	return o.documents.of(ctx, query) != nil
}

// refuseNulls refuses a field some of whose arguments are null and must not be.
func refuseNulls(ctx context.Context, next graphql.Resolver) (any, error) {
	if f := graphql.GetFieldContext(ctx); len(f.Args) > 0 {
		if err := selections.CheckNulls(f.Field.Field, graphql.GetOperationContext(ctx).Variables); err != nil {
			return nil, err
		}
	}
	return next(ctx)
}

// parameterDocument is the parameter that names a document by its id, after appendix A of GraphQL over
// HTTP. It is passed on among the extensions, where a client cannot put it.
const parameterDocument = "documentId"

// OnlyTrusted is what happens to texts that are not among [Config.Trusted].
type OnlyTrusted string

// The ways to treat them.
const (
	TrustAll   OnlyTrusted = "off" // they are answered; the default
	TrustLog   OnlyTrusted = "log" // they are answered, counted, and the hash of each is logged once
	TrustKnown OnlyTrusted = "on"  // they are refused
)

// mostLogged is how many texts are remembered as logged; further ones are not logged.
const mostLogged = 1000

// registered lets clients send something shorter than a query's text: the id of a trusted document, or the
// hash of a text that the server has seen. It also finds texts that are not trusted.
type registered struct {
	trusted *trusted.Documents
	only    OnlyTrusted
	metrics *Metrics
	logger  *slog.Logger
	logged  *cache[bool] // by hash
	apq     extension.AutomaticPersistedQuery
}

func newRegistered(cfg Config) *registered {
	return &registered{
		trusted: cfg.Trusted, only: cfg.OnlyTrusted, metrics: cfg.Metrics, logger: cfg.Logger,
		logged: newCache(mostLogged, mostLogged, func(string, bool) int { return 1 }),
		apq: extension.AutomaticPersistedQuery{
			Cache: textCache{newCache(persistedEntries, persistedBytes, func(hash, text string) int { return len(hash) + len(text) })},
		},
	}
}

// ExtensionName names the extension in gqlgen's messages.
func (*registered) ExtensionName() string { return "Registered" }

// Validate implements [graphql.HandlerExtension].
func (r *registered) Validate(schema graphql.ExecutableSchema) error { return r.apq.Validate(schema) }

// resolve puts the text of a trusted document in for its id.
func (r *registered) resolve(params *graphql.RawParams) error {
	id, has := params.Extensions[parameterDocument].(string)
	if has {
		if params.Query != "" {
			return apierr.BadInput("send query or documentId, not both")
		}
		text, ok := r.trusted.Text(id)
		if !ok {
			return &apierr.Error{Code: codePersistedNotFound, Message: "there is no document with this id"}
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

// MutateOperationParameters finds the text of a query. gqlgen gives an unknown hash an error of its own
// kind, and no other error has one.
func (r *registered) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := r.resolve(params); err != nil {
		return gqlerror.Wrap(err)
	}
	if params.Query != "" && !r.answers(params.Query) { // then it is not kept by its hash, either
		return gqlerror.Wrap(r.check(ctx, params.Query, params.OperationName))
	}
	if err := r.apq.MutateOperationParameters(ctx, params); err != nil {
		if err.Extensions["code"] == nil {
			return gqlerror.Wrap(apierr.BadInput("%s", err.Message))
		}
		return err
	}
	if err := r.check(ctx, params.Query, params.OperationName); err != nil {
		return gqlerror.Wrap(err)
	}
	return nil
}

// answers reports whether a text is answered. A text that was answered before may no longer be.
func (r *registered) answers(text string) bool { return r.only != TrustKnown || r.trusted.Has(text) }

// check counts a text that is not trusted. If the text is refused, it returns an error that says
// so.
func (r *registered) check(ctx context.Context, text, operation string) error {
	switch {
	case r.only != TrustKnown && r.only != TrustLog || r.trusted.Has(text):
	case r.only == TrustKnown:
		r.metrics.untrusted("refused")
		return apierr.Forbidden("this server answers registered documents only: send a documentId")
	default:
		r.metrics.untrusted("answered")
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		if _, ok := r.logged.Get(ctx, hash); !ok {
			r.logged.Add(ctx, hash, true)
			r.logger.WarnContext(ctx, "a document is not trusted", "sha256", hash, "operation", apierr.Shortened(operation, maxMessage))
		}
	}
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

// newCache makes a cache. Each value counts as at least the size of which maxEntries fit, which
// bounds the number of values.
func newCache[V any](maxEntries, maxSize int, sizeOf func(string, V) int) *cache[V] {
	return &cache[V]{
		entries: otter.Must(&otter.Options[string, V]{
			MaximumWeight: uint64(maxSize),
			Weigher:       func(key string, value V) uint32 { return uint32(max(sizeOf(key, value), maxSize/maxEntries)) },
		}),
		largest: maxSize / 8,
		sizeOf:  sizeOf,
	}
}

// Get returns the value of a key.
func (c *cache[V]) Get(_ context.Context, key string) (V, bool) { return c.entries.GetIfPresent(key) }

// Add puts a value in, and drops the values used least. A value that would take more than an eighth
// of the cache is not kept.
func (c *cache[V]) Add(_ context.Context, key string, value V) {
	if c.sizeOf(key, value) <= c.largest {
		c.entries.Set(key, value)
	}
}
