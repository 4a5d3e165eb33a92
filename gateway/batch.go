package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/selections"
)

// A batch is a list of operations in one body, as Apollo's BatchHttpLink sends them. It is one request: one
// admission, one deadline, and one limit of cost, of text and of the answer's length for all of them. They are
// executed one after another, in order. Each operation has loaders of its own, because the resolvers keep its
// plan beside them; what one operation has read is in the gateway's memory for the next.

// errTooMany means that a batch has more operations than it may have.
var errTooMany = errors.New("too many operations")

// batched is one operation of a batch.
type batched struct {
	op       *graphql.OperationContext
	document *document
	name     string
	cost     uint64
	errs     gqlerror.List // why it is not executed
}

// isList reports whether a body is a list.
func (b received) isList() bool {
	if b.body == nil {
		return false
	}
	text := bytes.TrimLeft(b.body.Bytes(), " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

// list reads the parameters of at most so many operations, whose queries have at most so many bytes together.
func (b received) list(r *http.Request, most, mostText int) ([]*graphql.RawParams, *refusal) {
	if most == 0 {
		return nil, refuse(http.StatusBadRequest, "the body is a list, and this server takes one operation a request: its setting --batch-limit turns lists on")
	}
	var all []*graphql.RawParams
	err := readJSON(b.body, func(r decoder) error {
		_, err := r.ReadToken()
		for err == nil && r.PeekKind() != ']' {
			if len(all) == most {
				return errTooMany
			}
			p := new(graphql.RawParams)
			err = r.params(p)
			all = append(all, p)
		}
		if err == nil {
			_, err = r.ReadToken()
		}
		return err
	})
	switch {
	case errors.Is(err, errTooMany):
		return nil, refuse(http.StatusBadRequest, "a list of operations may have at most %d", most)
	case err != nil:
		return nil, malformed(err)
	case len(all) == 0:
		return nil, refuse(http.StatusBadRequest, "the list of operations is empty")
	}
	read := graphql.TraceTiming{Start: b.start, End: graphql.Now()}
	text := 0
	for i, p := range all {
		if isNothing(p) {
			return nil, refuse(http.StatusBadRequest, "operation %d of the list has no query", i)
		}
		if text += len(p.Query); text > mostText {
			return nil, refuse(http.StatusBadRequest, "the queries of a list may have at most %d bytes together", mostText)
		}
		p.Headers, p.ReadTime = r.Header, read
	}
	return all, nil
}

// batch answers a list of operations by the list of their answers.
func (t transport) batch(parent context.Context, r *http.Request, raw received, exec graphql.GraphExecutor, a answer, streaming bool) {
	all, refusal := raw.list(r, t.batchLimit, t.operations.limit.TextBytes())
	if refusal == nil && streaming {
		refusal = refuse(http.StatusBadRequest, "a list of operations is answered by a list, not by %s", mediaStream)
	}
	if refusal != nil {
		a.refuse(refusal.status, refusal.err)
		return
	}
	ctx := withDeadline(parent, time.Now().Add(t.timeout))
	defer ctx.end()
	a.exchange.operation = operationBatch
	operations, cost, busyAlready := t.createAll(ctx, all, a.exchange)
	if busyAlready || cost > costlyFrom && !a.exchange.permit.work(ctx) {
		busy(a.w, a, tooManyRequests)
		return
	}
	if err := t.operations.limit.CheckSum(cost); err != nil {
		a.refuse(http.StatusBadRequest, err)
		return
	}
	parts, refused := t.answerAll(ctx, operations, exec, a.exchange)
	for range refused {
		a.pause()
	}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	written, ok := t.admission.enterWriting(t.streams.Party(ctx), length)
	if !ok {
		busy(a.w, a, tooManyRequests)
		return
	}
	defer written()
	a.exchange.outcome = outcomeOfAll(a.exchange.batch)
	a.gzip = acceptsGzip(r)
	a.writeParts(http.StatusOK, length, parts)
}

// createAll makes the operations of a batch and adds their costs up. It gives up if the gateway has too much work
// already.
func (t transport) createAll(ctx context.Context, all []*graphql.RawParams, x *exchange) (operations []batched, cost uint64, busy bool) {
	for _, params := range all {
		if len(params.Query) > costlyBytes && !t.operations.knows(ctx, params.Query) && !x.permit.work(ctx) {
			return nil, 0, true
		}
		one := batched{name: params.OperationName}
		var own uint64
		planned := x.span.Planning()
		one.op, one.document, own, one.errs = t.operations.create(ctx, params)
		planned(wasKnown(one.op))
		one.cost = own
		if one.errs == nil {
			one.name = one.op.Operation.Name
			if one.op.Operation.Operation == ast.Subscription {
				one.errs = gqlerror.List{gqlerror.Wrap(apierr.BadInput("a list of operations may have no subscription"))}
			}
		}
		cost += own // each is below the limit
		operations = append(operations, one)
	}
	return operations, cost, false
}

// answerAll answers operations one after another. The parts of the answer are written without change; refused
// is how many operations were not executed.
func (t transport) answerAll(ctx context.Context, all []batched, exec graphql.GraphExecutor, x *exchange) (parts [][]byte, refused int) {
	data, done := 0, make([]executed, len(all))
	for i, one := range all {
		began, how := time.Now(), outcomeRefused
		var response *graphql.Response
		if one.errs != nil {
			response = exec.DispatchError(graphql.WithOperationContext(ctx, one.op), one.errs)
			if !isPersistedMiss(response) {
				refused++
			}
		} else {
			span := x.span.Child()
			describe(span, one.op, one.cost)
			prepared := t.perRequest(t.streams.slow.countingReads(ctx, one.op, span))
			if one.document != nil {
				prepared = selections.With(prepared, &one.document.memo)
			}
			prepared, response = t.answer(prepared, exec, one.op)
			response = t.fitting(response, data)
			data += len(response.Data)
			how = t.streams.metrics.outcomeOf(prepared, response, x.patience > 0)
			span.Outcome(string(how), how.isFailure())
			span.End()
		}
		done[i] = executed{name: one.name, outcome: how, took: time.Since(began), isTrusted: one.op != nil && t.operations.documents.trusted.Has(one.op.RawQuery)}
		if one.op != nil && one.op.Operation != nil {
			done[i].operation = string(one.op.Operation.Operation)
		}
		head, tail := envelope(response)
		before := listGoesOn
		if i == 0 {
			before = listBegins
		}
		parts = append(parts, before, head, response.Data, tail)
	}
	x.batch = done
	return append(parts, listEnds), refused
}

// fitting is a response, or an error if it is too long together with so many bytes of other data.
func (t transport) fitting(response *graphql.Response, beside int) *graphql.Response {
	length := beside + len(response.Data)
	if length <= t.maxAnswer {
		return response
	}
	return &graphql.Response{Data: []byte("null"), Extensions: response.Extensions, Errors: gqlerror.List{asGraphQL(
		apierr.TooCostly(uint64(length), uint64(t.maxAnswer), "the answers of the list are longer than %d bytes together: send fewer operations at once", t.maxAnswer))}}
}

var listBegins, listGoesOn, listEnds = []byte{'['}, []byte{','}, []byte{']'}

// outcomeOfAll is the first outcome that is not ok, if there is one.
func outcomeOfAll(all []executed) outcome {
	for _, one := range all {
		if one.outcome != outcomeOK {
			return one.outcome
		}
	}
	return outcomeOK
}
