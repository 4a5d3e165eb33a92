package live

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
)

// run is the life of an operation.
func (o *operation) run(ctx context.Context, params *graphql.RawParams) {
	defer o.cancel()
	defer o.known()
	exchange.Of(ctx).Stream.Operations.Add(1)
	op, errs := o.create(ctx, params)
	if ctx.Err() != nil {
		o.forget() // the client no longer waits for it
		return
	}
	if errs != nil {
		o.refuse(o, o.Reject(ctx, op, errs))
		return
	}
	if op.Operation.Operation == ast.Subscription {
		o.known()
	}
	o.Server.run(ctx, op, o.slot, o)
	if o.forget() && o.ctx.Err() == nil {
		_ = o.write(message{ID: o.id, Type: typeComplete})
	}
}

// create makes the operation, or finds why there is none.
func (o *operation) create(ctx context.Context, params *graphql.RawParams) (op documents.Operation, errs gqlerror.List) {
	defer func() {
		// There is no net/http above. gqlgen does not recover panics from here: it
		// parses and validates outside of its own recovery.
		if reason := recover(); reason != nil {
			op.OperationContext = new(graphql.OperationContext)
			errs = gqlerror.List{gqlerror.Wrap(o.Recover(ctx, reason))}
		}
	}()
	return o.Create(ctx, params, o.Limiter.Parse)
}

// forget frees the id; false if it was free already, and may belong to another
// operation by now.
func (o *operation) forget() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.active[o.id] != o {
		return false
	}
	delete(o.active, o.id)
	o.rest()
	return true
}

// begun sends a ping that says so, if the client asks for it: the protocol has no message for it, and some clients know no ping. A client
// that then asks for the present state misses nothing.
func (o *operation) begun() {
	if !o.tellBegun {
		return
	}
	payload := exchange.AppendJSON([]byte(`{"begun":`), o.id)
	_ = o.write(message{Type: typePing, Payload: append(payload, '}')})
}

// next sends an answer, unless the client has completed the operation meanwhile.
// The message is put together by hand: the data may be long, and encoding/json would scan it once
// more.
func (o *operation) next(response *graphql.Response) error {
	o.mu.Lock()
	active := o.active[o.id] == o
	o.mu.Unlock()
	if !active {
		return context.Canceled
	}
	text := exchange.AppendJSON([]byte(`{"id":`), o.id)
	text = append(text, `,"type":"next","payload":`...)
	return o.send(exchange.AppendResponse(text, response, "}"))
}

// fail ends the operation with an error, after which it must not be completed. A refused operation
// was never active.
func (o *operation) fail(response *graphql.Response) error {
	o.forget()
	return o.write(message{ID: o.id, Type: typeError, Payload: exchange.AppendJSON(nil, response.Errors)})
}
