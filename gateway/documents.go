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

	"kith/gateway/trusted"
	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
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

// create makes the operation of a request and returns its cost, or the reasons why there is none. gqlgen's executor could do so,
// but takes a text for a number among the variables, and refuses 2.0 as an Int.
func (s *server) create(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, *document, uint64, gqlerror.List) {
	op := &graphql.OperationContext{
		DisableIntrospection: s.HideSchema, RecoverFunc: s.recover,
		ResolverMiddleware: refuseNulls, RootResolverMiddleware: s.freshForEachMutation,
	}
	if s.prefix != "" {
		selections.WithPrefix(op, s.prefix)
	}
	ctx = graphql.WithOperationContext(ctx, op)
	if err := s.registered.find(ctx, params); err != nil {
		return op, nil, 0, gqlerror.List{err}
	}
	if err := limits.CheckVariables(params.Variables); err != nil {
		return op, nil, 0, gqlerror.List{gqlerror.Wrap(err)}
	}
	op.RawQuery, op.OperationName, op.Extensions, op.Headers = params.Query, params.OperationName, params.Extensions, params.Headers
	known := s.documents.of(ctx, op.RawQuery)
	if known == nil {
		var errs gqlerror.List
		if known, errs = s.parse(op.RawQuery, s.IsAdmin(ctx)); errs != nil {
			return op, nil, 0, errs
		}
		op.Stats.Validation.End = graphql.Now()
		s.documents.Add(ctx, op.RawQuery, known)
	}
	op.Doc = known.parsed
	cost, wrong := s.choose(op, params.Variables)
	if wrong != nil {
		return op, nil, 0, gqlerror.List{gqlerror.Wrap(wrong)}
	}
	return op, known, cost, nil
}

// parse parses and validates a text, whose shape is checked in between: validation itself is quadratic in places.
func (s *server) parse(text string, isOperator bool) (*document, gqlerror.List) {
	doc, err := s.Limits.Parse(text)
	if err != nil {
		return nil, gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
	}
	errs := gqlerror.List{gqlerror.Wrap(apierr.InvalidQuery.Error("no operation provided"))}
	operators := false
	if len(doc.Operations) > 0 {
		operators, errs = s.schemas.Validate(doc, isOperator, quietRules())
	}
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if errs == nil {
		if err := selections.Settle(doc); err != nil {
			errs = gqlerror.List{err}
		}
	}
	return &document{parsed: doc, operators: operators}, errs
}

// choose finds the operation in its document, its variables and its cost.
func (s *server) choose(op *graphql.OperationContext, given map[string]any) (cost uint64, err error) {
	if op.Operation = op.Doc.Operations.ForName(op.OperationName); op.Operation == nil {
		return 0, apierr.InvalidQuery.Error("operation %s not found", op.OperationName)
	}
	if op.Variables, err = selections.Variables(s.whole, op.Operation, given); err != nil {
		return 0, err
	}
	if err := selections.CheckRoot(op); err != nil {
		return 0, err
	}
	return s.costs.Of(op)
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
		logged: newCache(mostLogged, mostLogged, 1, func(string, bool) int { return 1 }),
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
	return gqlerror.Wrap(r.check(ctx, params.Query, params.OperationName))
}

// check counts a text that is not trusted. If the text is refused, it returns an error that says so. A text that was answered
// before may no longer be.
func (r *registered) check(ctx context.Context, text, operation string) error {
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
	if _, ok := r.logged.Get(ctx, hash); !ok {
		r.logged.Add(ctx, hash, true)
		r.logger.WarnContext(ctx, "a document is not trusted", "sha256", hash, "operation", apierr.Shortened(operation, maxMessage))
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
