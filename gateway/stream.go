package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/traces"
	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/subscription"
)

// streams runs operations whose answers are sent one after another. Every answer is
// a separate execution: it has its own loaders, so that it reads the present
// state, its own deadline, and its own entry in the log.
type streams struct {
	Subscriptions
	perRequest  func(context.Context) context.Context
	timeout     time.Duration
	hurried     bool // the timeout is that of the caller
	present     graphql.ErrorPresenterFunc
	recover     graphql.RecoverFunc
	connections *connections
	admission   *admission
	refusals    *refusals
	limit       *limits.Extension
	slow        slowLog
	metrics     *Metrics
	traces      *traces.Traces
	logger      *slog.Logger
}

func newStreams(cfg Config, open *connections, limit *limits.Extension, slow slowLog) *streams {
	return &streams{
		admission:     newAdmission(cfg),
		refusals:      newRefusals(),
		limit:         limit,
		slow:          slow,
		Subscriptions: cfg.Subscriptions,
		perRequest:    cfg.PerRequest,
		timeout:       cfg.RequestTimeout,
		present:       presenter(cfg.Logger),
		recover:       recoverFunc(cfg.Logger),
		connections:   open,
		metrics:       cfg.Metrics,
		traces:        cfg.Traces,
		logger:        cfg.Logger,
	}
}

// within are the streams for a caller that waits for each answer only for so long; 0: the caller
// does not say.
func (s *streams) within(patience time.Duration) *streams {
	if patience == 0 {
		return s
	}
	own := *s
	own.timeout, own.hurried = patience, true
	return &own
}

// sink takes the answers of one operation. An error means that the client has disconnected.
type sink interface {
	// next takes an answer; more may follow.
	next(*graphql.Response) error
	// fail takes the reason why the operation was not executed or had to end.
	fail(*graphql.Response) error
}

// refuse answers an operation that cannot be executed.
func (s *streams) refuse(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, errs gqlerror.List, to sink) {
	s.metrics.operationRefused()
	_ = to.fail(exec.DispatchError(graphql.WithOperationContext(ctx, op), errs))
}

// run executes an operation until it has no more answers, the client does not take them, or the
// context is done.
func (s *streams) run(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, on *slot, to sink) (how outcome) {
	if op.Operation.Operation == ast.Subscription {
		cost := limits.SubscriptionCost(op)
		if err := on.subscribe(cost); err != nil {
			s.metrics.operationRefused()
			_ = to.fail(&graphql.Response{Errors: gqlerror.List{asGraphQL(err)}})
			return outcomeRefused
		}
		defer on.unsubscribe(cost)
	}
	s.metrics.operationBegan()
	defer func() {
		if reason := recover(); reason != nil { // no net/http above would recover it
			how = outcomeError
			_ = to.fail(&graphql.Response{Errors: gqlerror.List{asGraphQL(s.recover(ctx, reason))}})
		}
		s.metrics.operationEnded(string(op.Operation.Operation), how)
	}()
	if op.Operation.Operation != ast.Subscription {
		return s.runOnce(ctx, exec, op, on, to)
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
	ctx, ending := subscription.Attach(ctx, s.failed(ctx), func(ctx context.Context) func() { return on.turn(ctx).sent })
	responses, ctx := s.dispatch(ctx, exec, op, on)
	if root != nil {
		own := *root                              // the resolver still reads the original
		ctx = graphql.WithFieldContext(ctx, &own) // otherwise the paths of errors would lack the field
	}
	for {
		e, response, how := s.next(ctx, on, responses, false, nil)
		gone := response != nil && s.send(on, response, to) != nil
		e.turn.sent()
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
func (s *streams) failed(ctx context.Context) func(err error, attempt int) {
	return func(err error, attempt int) {
		s.metrics.readFailed()
		if attempt == 1 {
			s.logger.Log(ctx, slog.LevelWarn, "a subscription could not read what has changed", "request_id", RequestID(ctx), "error", err)
		}
	}
}

// dispatch lets a subscription begin, which reads the state at that time.
func (s *streams) dispatch(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, on *slot) (graphql.ResponseHandler, context.Context) {
	defer on.turn(ctx).sent()
	return exec.DispatchOperation(s.perRequest(ctx), op)
}

// runOnce executes a query or a mutation.
func (s *streams) runOnce(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, on *slot, to sink) outcome {
	span := s.spanOf(ctx, op)
	responses, ctx := exec.DispatchOperation(ctx, op)
	e, response, how := s.next(ctx, on, s.admitted(op, responses), true, span)
	defer e.turn.sent()
	span.Outcome(string(how), how.isFailure())
	if x := exchangeOf(ctx); x.span == nil { // otherwise the request ends it
		span.End()
	}
	if ctx.Err() != nil || s.send(on, response, to) != nil {
		return outcomeCanceled
	}
	return how
}

// send gives an answer to a sink, or an error in its place if there is no room for it. Such answers are held twice: as data, and
// as the message that is made of it.
func (s *streams) send(on *slot, response *graphql.Response, to sink) error {
	leave, ok := s.admission.enterWriting(on.party, 2*len(response.Data))
	defer leave()
	if !ok {
		response = &graphql.Response{Data: []byte("null"), Errors: gqlerror.List{asGraphQL(apierr.Unavailable(tooManyAnswers))}}
	}
	return to.next(response)
}

// spanOf is the span of a query or a mutation: that of its request. On a WebSocket it is a span of its own, with the parent
// that the handshake has.
func (s *streams) spanOf(ctx context.Context, op *graphql.OperationContext) *traces.Span {
	x := exchangeOf(ctx)
	if x.stream == nil || x.stream.transport != transportWebSocket {
		return x.span
	}
	span := s.traces.Request(op.Headers)
	if span != nil {
		cost, _ := s.limit.Cost(op)
		describe(span, op, cost)
	}
	return span
}

// admitted admits a query or a mutation as over plain HTTP, once it has its turn.
func (s *streams) admitted(op *graphql.OperationContext, responses graphql.ResponseHandler) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		admitted, ok := s.admission.enter(ctx)
		if ok {
			defer admitted.end()
			cost, _ := s.limit.Cost(op)
			ok = cost <= costlyFrom || admitted.work(ctx)
		}
		if !ok {
			return &graphql.Response{Errors: gqlerror.List{asGraphQL(apierr.Unavailable(tooManyRequests))}}
		}
		return responses(ctx)
	}
}

// next makes the next answer. If there is none, it returns nil, except for an operation that has
// exactly one answer. The event's turn is over when the answer has been sent.
func (s *streams) next(ctx context.Context, on *slot, responses graphql.ResponseHandler, one bool, span *traces.Span) (*event, *graphql.Response, outcome) {
	e := newEvent(context.WithValue(ctx, exchangeKey{}, &exchange{id: RequestID(ctx)}), on, s.timeout)
	done := false
	defer func() {
		e.end()
		if !done { // it panicked
			e.turn.sent()
		}
	}()
	if one {
		e.start() // it has been asked for already
		e.begin()
	}
	response := responses(s.perRequest(s.slow.countingReads(e, graphql.GetOperationContext(ctx), span)))
	if response == nil && one {
		response = &graphql.Response{Errors: gqlerror.List{asGraphQL(overdue(e))}}
	}
	done = true
	if response == nil {
		return e, nil, ""
	}
	how := s.metrics.outcomeOf(e, response, s.hurried)
	s.metrics.answered(how, e.end())
	if s.hurried {
		s.metrics.hurried(how)
	}
	return e, response, how
}
