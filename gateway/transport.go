package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/gateway/quota"
	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
)

// ServeHTTP is GraphQL over HTTP, both POST and GET, after
// https://graphql.github.io/graphql-over-http/draft/. gqlgen has transports of
// its own; they read a body of any size, send it back when it is not JSON,
// answer 422 where the specification wants 200, put "data": null into request
// errors, and scan each answer once more on the way out.
//
// A client that asks for server-sent events gets its answers by [server.stream], and a WebSocket by
// [server.serveSocket]. The answer is written by the request's exchange; no handler in between has a writer of its own.
func (s *server) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	if r.Method == http.MethodOptions {
		x.Header().Set("Allow", allowedMethods)
		x.WriteHeader(http.StatusNoContent)
		return
	}
	a, handle := answering(r, x, s.admission), s.handle
	if upgrades(r) {
		handle = s.serveSocket
	}
	defer func() {
		// gqlgen recovers panics below a field; this is for all others.
		if reason := recover(); reason != nil {
			a.refuse(&refusal{http.StatusInternalServerError, s.recover(r.Context(), reason)})
		}
	}()
	if why := handle(a); why != nil {
		a.refuse(why)
	}
}

// handle answers one request over plain HTTP, or says why it is refused.
func (s *server) handle(a answer) *refusal {
	ctx := a.r.Context()
	patience, why := callerTimeout(a.r, s.RequestTimeout)
	if why != nil {
		return why
	}
	if patience < s.RequestTimeout {
		a.patience = patience
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	body, why := s.read(a)
	if why != nil {
		return why
	}
	defer release(body)
	ok := false
	if *a.permit, ok = s.admission.enter(ctx); !ok {
		return busy(tooManyRequests)
	}
	defer a.permit.end()
	if max(len(a.r.URL.RawQuery), body.Len()) > costlyBytes && !a.permit.work(ctx, s.admission.party(ctx), costlyFrom) {
		return busy(tooManyRequests)
	}
	params, err := paramsOf(a.r, body)
	if err != nil {
		return &refusal{http.StatusBadRequest, err}
	}
	return s.execute(ctx, params, a)
}

// execute answers a GraphQL request. When its deadline passes, resolvers that
// honour it end with an error, which becomes part of the answer; the
// connection is not cut.
func (s *server) execute(parent context.Context, params *graphql.RawParams, a answer) *refusal {
	ctx, cancel := context.WithTimeout(parent, s.RequestTimeout)
	defer cancel()
	if len(params.Query) > costlyBytes && s.documents.of(ctx, params.Query) == nil && !a.permit.work(ctx, s.admission.party(ctx), costlyFrom) {
		return busy(tooManyRequests)
	}
	byID, began := params.Query == "", time.Now()
	op, document, cost, errs := s.create(ctx, params)
	if a.span != nil {
		a.span.Plan(began, op.Stats.Validation.End.IsZero())
		if errs == nil {
			a.span.Operation(op, cost)
		}
	}
	a.name = params.OperationName
	if errs != nil && a.streaming {
		return s.stream(a, op, errs)
	}
	if errs != nil {
		a.requestError(s.exec.DispatchError(graphql.WithOperationContext(ctx, op), errs))
		return nil
	}
	a.operation, a.name = string(op.Operation.Operation), op.Operation.Name
	a.isTrusted = s.Trusted != nil && s.Trusted.Has(op.RawQuery)
	live := op.Operation.Operation == ast.Subscription
	if live {
		a.span = nil
	}
	switch {
	case live && !a.streaming && !acceptsStream(a.r):
		return refuse(http.StatusBadRequest, "subscriptions need a WebSocket, or the header Accept: %s", mediaStream)
	case op.Operation.Operation == ast.Mutation && a.r.Method == http.MethodGet:
		a.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "mutations are sent by POST")
	case live || a.streaming:
		return s.stream(a, op, nil)
	}
	if cost > costlyFrom && !s.work(ctx, a.permit, s.admission.party(ctx), op, cost) {
		return busy(tooManyRequests)
	}
	ctx = selections.With(s.PerRequest(s.countingReads(ctx, op, a.span)), &document.memo)
	responses, ctx := s.executorFor(ctx).DispatchOperation(ctx, op)
	response := inTime(ctx, responses(ctx))
	if len(response.Data) >= longAnswer {
		written, ok := s.admission.send(s.admission.party(ctx), len(response.Data))
		defer written()
		if !ok {
			return busy(tooManyAnswers)
		}
	}
	if byID && a.r.Method == http.MethodGet {
		a.keeping = keepingOf(a.r, op, response)
	}
	a.result(ctx, response)
	return nil
}

// work announces the work of an operation to its permit, except for what has a queue of its own.
func (s *server) work(ctx context.Context, p *permit, who quota.Party, op *graphql.OperationContext, cost uint64) bool {
	cost -= s.costs.Queued(op)
	return cost <= costlyFrom || p.work(ctx, who, cost)
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

// quietRules are the rules of validation without suggestions, for which rules search the schema:
// these cost time in proportion to the names in the query, and show a schema that may be hidden.
func quietRules() *rules.Rules {
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
}
