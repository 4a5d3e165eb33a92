package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/selections"
)

// transport is GraphQL over HTTP, both POST and GET, after
// https://graphql.github.io/graphql-over-http/draft/. gqlgen has transports of
// its own; they read a body of any size, send it back when it is not JSON,
// answer 422 where the specification wants 200, put "data": null into request
// errors, and scan each answer once more on the way out.
//
// A client that asks for server-sent events gets its answers by [transport.stream].
type transport struct {
	perRequest func(context.Context) context.Context
	admission  *admission
	timeout    time.Duration
	streams    *streams
	origins    origins
	maxBody    int64
	maxAnswer  int
	recover    graphql.RecoverFunc
	operations operations
}

func newTransport(cfg Config, origins origins, streams *streams, operations operations) transport {
	return transport{
		perRequest: cfg.PerRequest,
		admission:  streams.admission,
		timeout:    cfg.RequestTimeout,
		streams:    streams,
		origins:    origins,
		maxBody:    cfg.MaxBody,
		maxAnswer:  cfg.MaxAnswer,
		recover:    recoverFunc(cfg.Logger),
		operations: operations,
	}
}

// Do answers one request.
func (t transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	a := answer{w: w, exchange: exchangeOf(r.Context()), media: negotiate(r), frame: writtenAtOnce}
	if r.ProtoMajor == 2 {
		a.frame = writtenToStream
	}
	streaming := a.media == mediaStream
	if streaming {
		a.media = mediaJSON // for refusals before there is a stream
	}
	a.setHeaders()
	ctx := r.Context()
	a.streams, a.ctx = t.streams, ctx
	defer func() {
		// gqlgen recovers panics below a field; this is for all others.
		if reason := recover(); reason != nil {
			a.refuse(http.StatusInternalServerError, t.recover(r.Context(), reason))
		}
	}()
	patience, refusal := patienceOf(r, t.timeout)
	if refusal != nil {
		a.refuse(refusal.status, refusal.err)
		return
	}
	if patience < t.timeout {
		a.exchange.patience = patience
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	raw, refusal := t.read(w, r)
	if refusal != nil {
		a.refuse(refusal.status, refusal.err)
		return
	}
	defer raw.release()
	permit, ok := &a.exchange.permit, false
	if *permit, ok = t.admission.enter(ctx); !ok {
		busy(w, a, tooManyRequests)
		return
	}
	defer permit.end()
	if raw.length(r) > costlyBytes && !permit.work(ctx) {
		busy(w, a, tooManyRequests)
		return
	}
	params, refusal := raw.params(r)
	if refusal != nil {
		a.refuse(refusal.status, refusal.err)
		return
	}
	t.execute(ctx, r, params, exec, a, streaming, permit)
}

// execute answers a GraphQL request. When its deadline passes, resolvers that
// honour it end with an error, which becomes part of the answer; the
// connection is not cut.
func (t transport) execute(parent context.Context, r *http.Request, params *graphql.RawParams, exec graphql.GraphExecutor, a answer, streaming bool, permit *permit) {
	ctx, cancel := context.WithTimeout(parent, t.timeout)
	defer cancel()
	if len(params.Query) > costlyBytes && !t.operations.knows(ctx, params.Query) && !permit.work(ctx) {
		busy(a.w, a, tooManyRequests)
		return
	}
	byID := params.Query == ""
	planned := a.exchange.planning()
	op, document, cost, errs := t.operations.create(ctx, params)
	planned(wasKnown(op))
	a.exchange.name = params.OperationName
	if errs != nil && streaming {
		permit.end()
		t.stream(r, exec, op, errs, a)
		return
	}
	if errs != nil {
		a.requestError(exec.DispatchError(graphql.WithOperationContext(ctx, op), errs))
		return
	}
	a.exchange.operation = string(op.Operation.Operation)
	a.exchange.name = op.Operation.Name
	a.exchange.isTrusted = t.operations.documents.isTrusted(op.RawQuery)
	describe(a.exchange.span, op, cost)
	live := op.Operation.Operation == ast.Subscription
	if live {
		a.exchange.span = nil
	}
	switch {
	case live && !streaming && !acceptsStream(r):
		a.refuse(http.StatusBadRequest, apierr.BadInput("subscriptions need a WebSocket, or the header Accept: %s", mediaStream))
		return
	case op.Operation.Operation == ast.Mutation && r.Method == http.MethodGet:
		a.w.Header().Set("Allow", http.MethodPost)
		a.refuse(http.StatusMethodNotAllowed, apierr.BadInput("mutations are sent by POST"))
		return
	case live || streaming:
		permit.end()
		t.stream(r, exec, op, nil, a)
		return
	}
	prepared := t.perRequest(t.streams.slow.countingReads(ctx, op, a.exchange.span))
	if cost > costlyFrom && !permit.work(ctx) {
		busy(a.w, a, tooManyRequests)
		return
	}
	if document != nil {
		prepared = selections.With(prepared, &document.memo)
	}
	executed, response := t.answer(prepared, exec, op)
	if len(response.Data) >= longAnswer {
		written, ok := t.admission.enterWriting(t.streams.Party(ctx), len(response.Data))
		defer written()
		if !ok {
			busy(a.w, a, tooManyAnswers)
			return
		}
	}
	a.gzip = acceptsGzip(r)
	if byID && r.Method == http.MethodGet {
		a.keeping = keepingOf(r, op, response)
	}
	a.result(executed, response)
}

// answer executes an operation that has one answer.
func (t transport) answer(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext) (executed context.Context, response *graphql.Response) {
	responses, executed := exec.DispatchOperation(ctx, op)
	return executed, inTime(executed, responses(executed))
}

// inTime is a response, or the error that explains why there is none: gqlgen returns none once the
// context is done.
func inTime(ctx context.Context, response *graphql.Response) *graphql.Response {
	if response == nil {
		return &graphql.Response{Errors: gqlerror.List{asGraphQL(overdue(ctx))}}
	}
	return response
}

func asGraphQL(err error) *gqlerror.Error {
	known, ok := apierr.Of(err)
	if !ok {
		known = &apierr.Error{Code: apierr.CodeInternal, Message: masked}
	}
	return &gqlerror.Error{Message: apierr.Shortened(known.Message, maxMessage), Extensions: known.Extensions()}
}
