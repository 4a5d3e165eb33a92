package gateway

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
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
// A client that asks for server-sent events gets its answers by [live.Server.Events], and a WebSocket by
// [live.Server.WebSocket]. The answer is written by the request's exchange; no handler in between has a writer of its own.
func (s *server) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	x := exchange.Of(r.Context())
	ctx, err := s.Identify(x.Header(), r)
	r = r.WithContext(ctx)
	if err != nil {
		answering(r, x, s.admission, s.Metrics).refuse(exchange.Unknown(err))
		return
	}
	if r.Method == http.MethodOptions {
		x.Header().Set("Allow", documents.AllowedMethods)
		x.WriteHeader(http.StatusNoContent)
		return
	}
	a, handle := answering(r, x, s.admission, s.Metrics), s.handle
	if exchange.Upgrades(r) {
		handle = s.upgrade
	}
	defer func() {
		// gqlgen recovers panics below a field; this is for all others.
		if reason := recover(); reason != nil {
			a.refuse(&exchange.Refusal{Status: http.StatusInternalServerError, Err: s.recover(r.Context(), reason)})
		}
	}()
	if why := handle(a); why != nil {
		a.refuse(why)
	}
}

// handle answers one request over plain HTTP, or says why it is refused.
func (s *server) handle(a answer) *exchange.Refusal {
	ctx := a.r.Context()
	patience, why := callerTimeout(a.r, s.RequestTimeout)
	if why != nil {
		return why
	}
	if patience < s.RequestTimeout {
		a.Patience = patience
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	if a.r.Method == http.MethodGet && s.origins.forged(a.r) {
		return &exchange.Refusal{Status: http.StatusForbidden, Err: apierr.OriginForeign.Error(
			"a page of another origin may not send queries by GET; if it is meant to, send the header %s", headersNotSimple[0])}
	}
	body, why := documents.Body(a.Exchange, a.r, s.MaxBody, s.admission)
	if why != nil {
		return why
	}
	ok := false
	if *a.permit, ok = s.admission.Admit(ctx); !ok {
		return exchange.Busy(exchange.TooManyRequests)
	}
	defer a.permit.End()
	if !a.permit.Read(ctx, max(len(a.r.URL.RawQuery), body.Len())) {
		return exchange.Busy(exchange.TooManyRequests)
	}
	params, err := documents.ParametersOf(a.r, body)
	documents.Release(body) // a subscription would keep it for as long as it runs
	if err != nil {
		return &exchange.Refusal{Status: http.StatusBadRequest, Err: err}
	}
	return s.execute(ctx, params, a)
}

// execute answers a GraphQL request. When its deadline passes, resolvers that
// honour it end with an error, which becomes part of the answer; the
// connection is not cut.
func (s *server) execute(parent context.Context, params *graphql.RawParams, a answer) *exchange.Refusal {
	ctx, cancel := context.WithTimeout(parent, s.RequestTimeout)
	defer cancel()
	byID, began := params.Query == "", time.Now()
	op, errs := s.Create(ctx, params, a.permit.Parse)
	if errors.Is(errs, documents.ErrBusy) {
		return exchange.Busy(exchange.TooManyRequests)
	}
	if a.Span != nil {
		a.Span.Plan(began, op.Stats.Validation.End.IsZero())
		if errs == nil {
			a.Span.Operation(op.OperationContext, op.Cost)
		}
	}
	a.Name = params.OperationName
	if errs != nil && a.streaming {
		return s.stream(a, op, errs)
	}
	if errs != nil {
		a.requestError(s.Reject(ctx, op, errs))
		return nil
	}
	a.Operation, a.Name, a.IsTrusted = string(op.Operation.Operation), op.Operation.Name, s.Trusted != nil && s.Trusted.Has(op.RawQuery)
	live := op.Operation.Operation == ast.Subscription
	if live {
		a.Span = nil
	}
	switch {
	case live && !a.streaming && !acceptsStream(a.r):
		return exchange.Refuse(http.StatusBadRequest, "subscriptions need a WebSocket, or the header Accept: %s", mediaStream)
	case op.Operation.Operation == ast.Mutation && a.r.Method == http.MethodGet:
		a.Header().Set("Allow", http.MethodPost)
		return exchange.Refuse(http.StatusMethodNotAllowed, "mutations are sent by POST")
	case live || a.streaming:
		return s.stream(a, op, nil)
	}
	if !s.Execute(ctx, a.permit, op) {
		return exchange.Busy(exchange.TooManyRequests)
	}
	ctx = selections.With(s.Prepare(a.permit.Waiting(ctx), op.OperationContext, a.Span), &op.Document.Memo)
	responses, ctx := s.Dispatch(ctx, op)
	response := exchange.InTime(ctx, responses(ctx))
	written, ok := s.admission.Send(ctx, len(response.Data))
	defer written()
	if !ok {
		return exchange.Busy(exchange.TooManyAnswers)
	}
	if byID && a.r.Method == http.MethodGet {
		a.keeping = keepingOf(a.r, op.OperationContext, response)
	}
	a.result(ctx, response)
	return nil
}

// upgrade serves a WebSocket.
func (s *server) upgrade(a answer) *exchange.Refusal {
	if s.origins.isForeign(a.r) {
		return &exchange.Refusal{Status: http.StatusForbidden, Err: apierr.OriginForeign.Error("a page of another origin may not connect")}
	}
	return s.live.WebSocket(a.Exchange, a.r)
}

// stream answers by server-sent events.
func (s *server) stream(a answer, op documents.Operation, errs gqlerror.List) *exchange.Refusal {
	a.permit.End()
	return s.live.Events(a.Exchange, a.r, op, errs)
}

// Execute implements [live.Executor]. Work that has a queue of its own is left out.
func (s *server) Execute(ctx context.Context, p *quota.Permit, op documents.Operation) bool {
	if op.Cost > quota.CostlyFrom {
		op.Cost -= s.costs.Queued(op.OperationContext)
	}
	return p.Execute(ctx, op.Cost)
}

// Reject implements [live.Executor].
func (s *server) Reject(ctx context.Context, op documents.Operation, errs gqlerror.List) *graphql.Response {
	return s.exec.DispatchError(graphql.WithOperationContext(ctx, op.OperationContext), errs)
}

// Create implements [live.Executor]. gqlgen's executor could do so,
// but takes a text for a number among the variables, and refuses 2.0 as an Int.
func (s *server) Create(ctx context.Context, params *graphql.RawParams, parse documents.Turn) (made documents.Operation, errs gqlerror.List) {
	op := &graphql.OperationContext{
		DisableIntrospection: s.HideSchema, RecoverFunc: s.recover,
		ResolverMiddleware: refuseNulls, RootResolverMiddleware: s.freshForEachMutation,
	}
	made.OperationContext = op
	if s.prefix != "" {
		selections.WithPrefix(op, s.prefix)
	}
	ctx = graphql.WithOperationContext(ctx, op)
	if err := s.documents.Find(ctx, params); err != nil {
		return made, gqlerror.List{err}
	}
	err := limits.CheckVariables(params.Variables)
	if err != nil {
		return made, gqlerror.List{gqlerror.Wrap(err)}
	}
	op.RawQuery, op.OperationName, op.Extensions, op.Headers = params.Query, params.OperationName, params.Extensions, params.Headers
	if made.Document = s.documents.Known(ctx, op.RawQuery); made.Document == nil {
		errs = gqlerror.List{gqlerror.Wrap(documents.ErrBusy)}
		parse(ctx, len(op.RawQuery), func() { made.Document, errs = s.documents.Parse(ctx, op.RawQuery) })
		if errs != nil {
			return made, errs
		}
		op.Stats.Validation.End = graphql.Now()
	}
	op.Doc = made.Document.Parsed
	if made.Cost, err = s.choose(op, params.Variables); err != nil {
		return made, gqlerror.List{gqlerror.Wrap(err)}
	}
	return made, nil
}

// choose finds the operation in its document, its variables and its cost.
func (s *server) choose(op *graphql.OperationContext, given map[string]any) (cost uint64, err error) {
	if op.Operation = op.Doc.Operations.ForName(op.OperationName); op.Operation == nil {
		if op.OperationName == "" {
			return 0, apierr.InvalidQuery.Error("the query has several operations: send operationName, too")
		}
		return 0, apierr.InvalidQuery.Error("the query has no operation %q", op.OperationName)
	}
	if op.Variables, err = selections.Variables(s.whole, op.Operation, given); err != nil {
		return 0, err
	}
	if op.Operation.Operation == ast.Subscription {
		selections.OwnTexts(op.Variables)
	}
	if err := selections.CheckRoot(op); err != nil {
		return 0, err
	}
	return s.costs.Of(op)
}

// refuseNulls refuses a field some of whose arguments, or of the directives below it, are null and must not be.
func refuseNulls(ctx context.Context, next graphql.Resolver) (any, error) {
	if f := graphql.GetFieldContext(ctx); len(f.Args) > 0 {
		if err := selections.CheckNulls(f.Field.Field, graphql.GetOperationContext(ctx).Variables); err != nil {
			return nil, err
		}
	}
	if err := selections.CheckAttributes(ctx); err != nil {
		return nil, err
	}
	return next(ctx)
}

// patiences are the headers by which callers say how long they wait for the answer.
var patiences = [...]struct {
	name, form string
	parse      func(string) (time.Duration, bool)
}{
	// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
	{exchange.HeaderGRPCTimeout, "up to 8 digits and one of H, M, S, m, u, n, such as 500m", parseGRPCTimeout},
	{exchange.HeaderTimeout, "milliseconds, or a number with ms, s, m or h, such as 500ms", parseTimeout},
}

// maxTimeout is how many bytes the value of such a header may have.
const maxTimeout = 32

// callerTimeout is how long the caller of a request waits for its answer. It is most if the caller waits longer or does
// not say. If both headers are given, the shorter time counts.
func callerTimeout(r *http.Request, most time.Duration) (time.Duration, *exchange.Refusal) {
	patience := most
	for _, header := range patiences {
		values := r.Header[header.name]
		if len(values) == 0 {
			continue
		}
		given, ok := header.parse(strings.TrimSpace(values[0]))
		if !ok || len(values) > 1 {
			return 0, exchange.Refuse(http.StatusBadRequest, "the header %s has to be one time greater than 0: %s", header.name, header.form)
		}
		patience = min(patience, given)
	}
	return patience, nil
}

// grpcUnits are the units of grpc-timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

func parseGRPCTimeout(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	return times(text[:len(text)-1], grpcUnits[text[len(text)-1]])
}

// parseTimeout takes a number without a unit for milliseconds, as Envoy gives them to the servers behind it.
func parseTimeout(text string) (time.Duration, bool) {
	if len(text) > maxTimeout || strings.HasPrefix(text, "+") {
		return 0, false
	}
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return times(text, time.Millisecond)
	}
	given, err := time.ParseDuration(text)
	return given, err == nil && given > 0
}

// times is a number of units. A time that is too long to be represented becomes the longest that
// can be.
func times(digits string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseUint(digits, 10, 63)
	if unit == 0 || err != nil || n == 0 {
		return 0, false
	}
	return time.Duration(min(n, uint64(math.MaxInt64/unit))) * unit, true
}
