package live

import (
	"cmp"
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/graph/subscription"
)

// sink takes the answers of one operation. An error means that the client has disconnected.
type sink interface {
	// begun says that a subscription has begun: it tells what changes from now on.
	begun()
	// next takes an answer; more may follow.
	next(*graphql.Response) error
	// fail takes the reason why the operation was not executed or had to end.
	fail(*graphql.Response) error
}

// refuse answers an operation that is not executed.
func (s *Server) refuse(to sink, response *graphql.Response) exchange.Outcome {
	s.Metrics.Ran("", exchange.Refused)
	_ = to.fail(response)
	return exchange.Refused
}

// answerOf is an answer that is an error.
func answerOf(err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{exchange.AsGraphQL(err)}}
}

// run executes an operation whose answers are sent one after another, until it has no more answers, the client does not take
// them, or the context is done. Every answer is a separate execution: it has its own loaders, so that it reads the present
// state, its own deadline, and its own entry in the log.
func (s *Server) run(ctx context.Context, op documents.Operation, on *quota.Slot, to sink) (how exchange.Outcome) {
	live := op.Operation.Operation == ast.Subscription
	if live {
		end, err := on.Subscribe(op.Cost)
		if err != nil {
			return s.refuse(to, answerOf(err))
		}
		defer end()
	}
	s.Metrics.Running.Inc()
	defer func() {
		if reason := recover(); reason != nil { // no net/http above would recover it
			how = exchange.Error
			_ = to.fail(answerOf(s.Recover(ctx, reason)))
		}
		s.Metrics.Running.Dec()
		s.Metrics.Ran(string(op.Operation.Operation), how)
	}()
	if !live {
		return s.runOnce(ctx, op, on, to)
	}
	var root *graphql.FieldContext // of the subscription's own field, which comes first
	fields := op.ResolverMiddleware
	op.ResolverMiddleware = func(ctx context.Context, next graphql.Resolver) (any, error) {
		if root == nil {
			root = graphql.GetFieldContext(ctx)
		} else if e, ok := ctx.Value(eventKey{}).(*event); ok {
			e.begin() // a field below it: its event has come
		}
		return fields(ctx, next)
	}
	ctx, ending := subscription.Attach(ctx, s.failed(ctx), func(ctx context.Context) func() { return on.Turn(ctx).Sent })
	responses, ctx := s.subscribe(ctx, op, on)
	to.begun()
	if root != nil {
		own := *root                              // the resolver still reads the original
		ctx = graphql.WithFieldContext(ctx, &own) // otherwise the paths of errors would lack the field
	}
	for {
		e, response, how := s.next(ctx, on, responses, false, nil)
		gone := response != nil && s.send(ctx, response, to) != nil
		e.turn.Sent()
		switch {
		case gone, response == nil && ctx.Err() != nil:
			return exchange.Canceled
		case response == nil && ending.Err() != nil:
			ctx := graphql.WithResponseContext(graphql.WithOperationContext(ctx, op.OperationContext), s.Present, graphql.DefaultRecover)
			graphql.AddError(ctx, ending.Err())
			_ = to.fail(&graphql.Response{Errors: graphql.GetErrors(ctx)})
			return exchange.Error
		case response == nil:
			return exchange.OK
		case response.Data == nil: // not an event, but the reason why there are none
			return how
		}
	}
}

// failed counts failed reads of a subscription, and logs the first of several attempts.
func (s *Server) failed(ctx context.Context) func(err error, attempt int) {
	return func(err error, attempt int) {
		s.Metrics.Unread.Inc()
		if attempt == 1 {
			s.Logger.WarnContext(ctx, "subscription cannot read what has changed", "request_id", exchange.RequestID(ctx), "error", err)
		}
	}
}

// subscribe lets a subscription begin, which reads the state at that time.
func (s *Server) subscribe(ctx context.Context, op documents.Operation, on *quota.Slot) (graphql.ResponseHandler, context.Context) {
	defer on.Turn(ctx).Sent()
	return s.Dispatch(s.Prepare(ctx, op.OperationContext, nil), op)
}

// runOnce executes a query or a mutation. It has the span of its request; on a WebSocket it has a span of its own, with the
// parent that the handshake has.
func (s *Server) runOnce(ctx context.Context, op documents.Operation, on *quota.Slot, to sink) exchange.Outcome {
	x := exchange.Of(ctx)
	span := x.Span
	if x.Stream.Transport == exchange.WebSocket {
		span = s.Traces.Request(op.Headers)
		span.Operation(op.OperationContext, op.Cost)
	}
	responses, ctx := s.Dispatch(ctx, op)
	e, response, how := s.next(ctx, on, s.admitted(op, responses), true, span)
	defer e.turn.Sent()
	if x.Span == nil { // otherwise the request ends it
		span.End(string(how), how.IsFailure())
	}
	if ctx.Err() != nil || s.send(ctx, response, to) != nil {
		return exchange.Canceled
	}
	return how
}

// send gives an answer to a sink, or an error in its place if there is no room for it. Such answers are held twice: as data, and
// as the message that is made of it.
func (s *Server) send(ctx context.Context, response *graphql.Response, to sink) error {
	leave, ok := s.Limiter.Send(ctx, 2*len(response.Data))
	defer leave()
	if !ok {
		response = answerOf(exchange.Busy(exchange.TooManyAnswers).Err)
		response.Data = []byte("null")
	}
	exchange.Of(ctx).Stream.Answers.Add(1)
	return to.next(response)
}

// admitted admits a query or a mutation as over plain HTTP, once it has its turn.
func (s *Server) admitted(op documents.Operation, responses graphql.ResponseHandler) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		admitted, ok := s.Limiter.Admit(ctx)
		defer admitted.End()
		if !ok || !s.Execute(ctx, &admitted, op) {
			return answerOf(exchange.Busy(exchange.TooManyRequests).Err)
		}
		return responses(admitted.Waiting(ctx))
	}
}

// next makes the next answer. If there is none, it returns nil, except for an operation that has
// exactly one answer. The event's turn is over when the answer has been sent.
func (s *Server) next(ctx context.Context, on *quota.Slot, responses graphql.ResponseHandler, one bool, span *traces.Span) (*event, *graphql.Response, exchange.Outcome) {
	patience := exchange.Of(ctx).Patience // of a caller that waits for each answer only for so long
	e := newEvent(ctx, on, cmp.Or(patience, s.Timeout))
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
	response := responses(s.Prepare(e, graphql.GetOperationContext(ctx), span))
	if one {
		response = exchange.InTime(e, response)
	}
	done = true
	if response == nil {
		return e, nil, ""
	}
	how := s.Metrics.OutcomeOf(e, response, patience > 0)
	s.Metrics.Answers.WithLabelValues(string(how)).Inc()
	s.Metrics.Answering.Observe(e.end().Seconds())
	return e, response, how
}
