package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/quota"
	"kith/graph/apierr"
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
	a, handle := answering(r, x, s), s.handle
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

// upgrades reports whether a request asks to become a WebSocket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
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
	if a.permit, ok = s.admission.enter(ctx); !ok {
		return busy(tooManyRequests)
	}
	defer a.permit.end()
	if max(len(a.r.URL.RawQuery), body.Len()) > costlyBytes && !a.permit.work(ctx, s.Subscriptions.Party(ctx), costlyFrom) {
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
	if len(params.Query) > costlyBytes && s.documents.of(ctx, params.Query) == nil && !a.permit.work(ctx, s.Subscriptions.Party(ctx), costlyFrom) {
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
	if cost > costlyFrom && !s.work(ctx, &a.permit, s.Subscriptions.Party(ctx), op, cost) {
		return busy(tooManyRequests)
	}
	ctx = selections.With(s.PerRequest(s.countingReads(ctx, op, a.span)), &document.memo)
	responses, ctx := s.executorFor(ctx).DispatchOperation(ctx, op)
	response := inTime(ctx, responses(ctx))
	if len(response.Data) >= longAnswer {
		written, ok := s.admission.send(s.Subscriptions.Party(ctx), len(response.Data))
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
		known = apierr.ServerAtFault.Error(masked)
	}
	return &gqlerror.Error{Message: apierr.Shortened(known.Message, maxMessage), Extensions: known.Extensions()}
}
