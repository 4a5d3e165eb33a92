package gateway

import (
	"cmp"
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/graph/apierr"
	"kith/graph/subscription"
)

// sink takes the answers of one operation. An error means that the client has disconnected.
type sink interface {
	// next takes an answer; more may follow.
	next(*graphql.Response) error
	// fail takes the reason why the operation was not executed or had to end.
	fail(*graphql.Response) error
}

// refuse answers an operation that cannot be executed.
func (s *server) refuse(ctx context.Context, op *graphql.OperationContext, errs gqlerror.List, to sink) outcome {
	s.Metrics.ran("", outcomeRefused)
	_ = to.fail(s.exec.DispatchError(graphql.WithOperationContext(ctx, op), errs))
	return outcomeRefused
}

// fail ends an operation whose answer is an error.
func fail(to sink, err error) { _ = to.fail(&graphql.Response{Errors: gqlerror.List{asGraphQL(err)}}) }

// run executes an operation whose answers are sent one after another, until it has no more answers, the client does not take
// them, or the context is done. Every answer is a separate execution: it has its own loaders, so that it reads the present
// state, its own deadline, and its own entry in the log.
func (s *server) run(ctx context.Context, op *graphql.OperationContext, on *quota.Slot, to sink) (how outcome) {
	live := op.Operation.Operation == ast.Subscription
	if live {
		cost, _ := s.costs.Of(op)
		end, err := on.Subscribe(cost)
		if err != nil {
			s.Metrics.ran("", outcomeRefused)
			fail(to, err)
			return outcomeRefused
		}
		defer end()
	}
	s.Metrics.running.Inc()
	defer func() {
		if reason := recover(); reason != nil { // no net/http above would recover it
			how = outcomeError
			fail(to, s.recover(ctx, reason))
		}
		s.Metrics.running.Dec()
		s.Metrics.ran(string(op.Operation.Operation), how)
	}()
	if !live {
		return s.runOnce(ctx, op, on, to)
	}
	var root *graphql.FieldContext // of the subscription's own field, which comes first
	fields := op.ResolverMiddleware
	op.ResolverMiddleware = func(ctx context.Context, next graphql.Resolver) (any, error) {
		if root == nil {
			root = graphql.GetFieldContext(ctx)
		} else {
			begin(ctx) // a field below it: its event has come
		}
		return fields(ctx, next)
	}
	ctx, ending := subscription.Attach(ctx, s.failed(ctx), func(ctx context.Context) func() { return on.Turn(ctx).Sent })
	responses, ctx := s.dispatch(ctx, op, on)
	if root != nil {
		own := *root                              // the resolver still reads the original
		ctx = graphql.WithFieldContext(ctx, &own) // otherwise the paths of errors would lack the field
	}
	for {
		e, response, how := s.next(ctx, on, responses, false, nil)
		gone := response != nil && s.send(ctx, on, response, to) != nil
		e.turn.Sent()
		switch {
		case gone, response == nil && ctx.Err() != nil:
			return outcomeCanceled
		case response == nil && ending.Err() != nil:
			_ = to.fail(&graphql.Response{Errors: gqlerror.List{s.present(graphql.WithOperationContext(ctx, op), ending.Err())}})
			return outcomeError
		case response == nil:
			return outcomeOK
		case response.Data == nil: // not an event, but the reason why there are none
			return how
		}
	}
}

// failed counts failed reads of a subscription, and logs the first of several attempts.
func (s *server) failed(ctx context.Context) func(err error, attempt int) {
	return func(err error, attempt int) {
		s.Metrics.unread.Inc()
		if attempt == 1 {
			s.Logger.WarnContext(ctx, "subscription cannot read what has changed", "request_id", RequestID(ctx), "error", err)
		}
	}
}

// dispatch lets a subscription begin, which reads the state at that time.
func (s *server) dispatch(ctx context.Context, op *graphql.OperationContext, on *quota.Slot) (graphql.ResponseHandler, context.Context) {
	defer on.Turn(ctx).Sent()
	return s.executorFor(ctx).DispatchOperation(s.PerRequest(ctx), op)
}

// runOnce executes a query or a mutation. It has the span of its request; on a WebSocket it has a span of its own, with the
// parent that the handshake has.
func (s *server) runOnce(ctx context.Context, op *graphql.OperationContext, on *quota.Slot, to sink) outcome {
	x := exchangeOf(ctx)
	span := x.span
	if x.stream.transport == transportWebSocket {
		span = s.Traces.Request(op.Headers)
		cost, _ := s.costs.Of(op)
		span.Operation(op, cost)
	}
	responses, ctx := s.executorFor(ctx).DispatchOperation(ctx, op)
	e, response, how := s.next(ctx, on, s.admitted(op, on, responses), true, span)
	defer e.turn.Sent()
	if x.span == nil { // otherwise the request ends it
		span.End(string(how), how.isFailure())
	}
	if ctx.Err() != nil || s.send(ctx, on, response, to) != nil {
		return outcomeCanceled
	}
	return how
}

// send gives an answer to a sink, or an error in its place if there is no room for it. Such answers are held twice: as data, and
// as the message that is made of it.
func (s *server) send(ctx context.Context, on *quota.Slot, response *graphql.Response, to sink) error {
	leave, ok := s.admission.send(on.Party, 2*len(response.Data))
	defer leave()
	if !ok {
		response = &graphql.Response{Data: []byte("null"), Errors: gqlerror.List{asGraphQL(apierr.Overloaded.Error(tooManyAnswers))}}
	}
	exchangeOf(ctx).stream.answers.Add(1)
	return to.next(response)
}

// admitted admits a query or a mutation as over plain HTTP, once it has its turn.
func (s *server) admitted(op *graphql.OperationContext, on *quota.Slot, responses graphql.ResponseHandler) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		admitted, ok := s.admission.enter(ctx)
		defer admitted.end()
		if ok {
			cost, _ := s.costs.Of(op)
			ok = cost <= costlyFrom || s.work(ctx, &admitted, on.Party, op, cost)
		}
		if !ok {
			return &graphql.Response{Errors: gqlerror.List{asGraphQL(apierr.Overloaded.Error(tooManyRequests))}}
		}
		return responses(ctx)
	}
}

// next makes the next answer. If there is none, it returns nil, except for an operation that has
// exactly one answer. The event's turn is over when the answer has been sent.
func (s *server) next(ctx context.Context, on *quota.Slot, responses graphql.ResponseHandler, one bool, span *traces.Span) (*event, *graphql.Response, outcome) {
	patience := exchangeOf(ctx).patience // of a caller that waits for each answer only for so long
	e := newEvent(context.WithValue(ctx, exchangeKey{}, &exchange{id: RequestID(ctx)}), on, cmp.Or(patience, s.RequestTimeout))
	done := false
	defer func() {
		e.end()
		if !done { // it panicked
			e.turn.Sent()
		}
	}()
	if one {
		e.start() // it has been asked for already
		e.begin()
	}
	response := responses(s.PerRequest(s.countingReads(e, graphql.GetOperationContext(ctx), span)))
	if one {
		response = inTime(e, response)
	}
	done = true
	if response == nil {
		return e, nil, ""
	}
	how := s.Metrics.outcomeOf(e, response, patience > 0)
	s.Metrics.answers.WithLabelValues(string(how)).Inc()
	s.Metrics.answering.Observe(e.end().Seconds())
	return e, response, how
}
