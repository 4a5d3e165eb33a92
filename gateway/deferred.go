package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/klauspost/compress/gzhttp"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/deferral"
	"kith/graph/selections"
)

// delivery answers a query in parts: first what is not deferred, then each deferred fragment when
// it is ready. They are executed at the same time, by the same steps as any query, and share what
// the request has read.
type delivery struct {
	transport
	a      answer
	format *format
	split  *deferral.Split
	op     *graphql.OperationContext
	ctx    context.Context // prepared for what is answered first
	end    func()          // ends the request's context

	found deferral.Found // objects that have been answered
	ids   map[*deferral.Part]string
	ended chan *part
	begun int // parts that have begun and have not ended
	left  int // bytes of data that may follow
}

// part is a deferred fragment that has been executed.
type part struct {
	*deferral.Part
	operations []*deferral.Operation
	responses  []*graphql.Response // one for each of the operations
	found      deferral.Found
	how        outcome
	failed     gqlerror.List // why there is no data; nil: there is
}

// defers prepares to answer a query in parts; nil if the query has to be answered as a whole: because nothing is
// deferred, the client does not take parts, or the parts together cost too much (what leads to each part is looked up
// again).
func (t transport) defers(r *http.Request, document *document, op *graphql.OperationContext, a answer) *delivery {
	if document == nil || document.deferred == nil || t.perPart == nil {
		return nil
	}
	format := formatOf(r)
	if format == nil || t.refuses(r.Context(), op) != nil {
		return nil
	}
	split := document.deferred.Split(t.queries.schema.Schema(), op.Operation, op.Variables)
	if split == nil || !t.operations.limit.Together(split.All(), op.Variables) {
		return nil
	}
	return &delivery{
		transport: t, a: a, format: format, split: split, op: op,
		found: deferral.Found{}, ids: make(map[*deferral.Part]string), ended: make(chan *part, len(split.Parts)), left: t.maxAnswer,
	}
}

// first executes what is not deferred.
func (d *delivery) first(ctx context.Context, end func()) (context.Context, *graphql.Response) {
	d.ctx, d.end = ctx, end
	op := d.operation(d.split.First)
	op.Stats = d.op.Stats // with the consistency token: the parts that follow read no older state
	executed, response := d.queries.answer(selections.With(ctx, &d.split.First.Memo), op)
	response = inTime(executed, response)
	response.Data = d.found.Read(d.split.First, response.Data)
	return executed, response
}

// operation is one of the operations that the query is split into.
func (d *delivery) operation(of *deferral.Operation) *graphql.OperationContext {
	return &graphql.OperationContext{
		RawQuery: d.op.RawQuery, OperationName: d.op.OperationName, Variables: d.op.Variables,
		Extensions: d.op.Extensions, Headers: d.op.Headers, Doc: d.op.Doc, Operation: of.OperationDefinition,
		DisableIntrospection: d.op.DisableIntrospection, RecoverFunc: d.op.RecoverFunc,
		ResolverMiddleware: d.op.ResolverMiddleware, RootResolverMiddleware: d.op.RootResolverMiddleware,
		Stats: graphql.Stats{Read: d.op.Stats.Read},
	}
}

// begin begins the parts within a part that has been answered, and returns them; nil stands for what is answered
// first. A fragment on objects that do not exist is skipped.
func (d *delivery) begin(within *deferral.Part) (begun []*deferral.Part) {
	for _, p := range d.split.Parts {
		if p.Within != within {
			continue
		}
		var operations []*deferral.Operation
		for _, o := range p.Operations {
			if d.found.Has(o) {
				operations = append(operations, o)
			}
		}
		if len(operations) == 0 {
			continue
		}
		d.ids[p] = strconv.Itoa(len(d.ids))
		d.begun++
		begun = append(begun, p)
		go func() { d.ended <- d.execute(&part{Part: p, operations: operations, found: deferral.Found{}}) }()
	}
	return begun
}

// execute executes a part.
func (d *delivery) execute(p *part) *part {
	ctx := d.ctx
	defer func() {
		if reason := recover(); reason != nil { // no net/http above would recover it
			p.failed, p.how = gqlerror.List{asGraphQL(d.recover(ctx, reason))}, outcomeError
		}
	}()
	ctx = d.perPart(ctx)
	p.how = outcomeOK
	for _, o := range p.operations {
		executed, response := d.queries.answer(selections.With(ctx, &o.Memo), d.operation(o))
		response = inTime(executed, response)
		p.how = worse(p.how, outcomeOf(executed, response))
		if response.Data = p.found.Read(o, response.Data); response.Data == nil {
			p.fail(response.Errors)
		}
		p.responses = append(p.responses, response)
	}
	return p
}

// fail notes why there is no data: there was an error below a field that must not be null, or the object no
// longer exists since it was answered.
func (p *part) fail(why gqlerror.List) {
	p.how = worse(p.how, outcomeError)
	if len(why) == 0 {
		why = gqlerror.List{asGraphQL(apierr.NotFound("what the fragment stands on is no longer there"))}
	}
	p.failed = append(p.failed, why...)
}

// worse is the worse of two outcomes.
func worse(a, b outcome) outcome {
	order := [...]outcome{outcomeOK, outcomePartial, outcomeError, outcomeTimeout, outcomeCanceled}
	return order[max(slices.Index(order[:], a), slices.Index(order[:], b))]
}

// follow sends the first answer and all parts that follow it. The parts in begun have begun.
func (d *delivery) follow(ctx context.Context, response *graphql.Response, begun []*deferral.Part) {
	x := d.a.exchange
	x.outcome = outcomeOf(ctx, response)
	d.left -= len(response.Data)
	sending := d.open() && d.write(d.format.first(d, response, begun))
	for d.begun > 0 {
		ended := []*part{<-d.ended}
		for len(d.ended) > 0 {
			ended = append(ended, <-d.ended)
		}
		d.begun -= len(ended)
		x.parts += len(ended)
		if sending {
			sending = d.send(ended)
		}
		if !sending {
			d.end() // what is still being executed is not needed
		}
		for _, p := range ended {
			d.metrics.deferred(p.how)
			if p.how == outcomeError {
				p.how = outcomePartial // there is data of what was answered first
			}
			x.outcome = worse(x.outcome, p.how)
		}
	}
	if !sending || errors.Is(ctx.Err(), context.Canceled) {
		x.outcome = outcomeCanceled
	}
}

// send sends parts that have ended, and begins the parts within them; false if the client does not
// take it.
func (d *delivery) send(ended []*part) bool {
	length := 0
	for _, p := range ended {
		length += d.bound(p)
	}
	written, ok := d.admission.enterWriting(d.ctx, length)
	if !ok {
		for _, p := range ended {
			p.fail(gqlerror.List{asGraphQL(apierr.Unavailable(tooManyRequests))})
		}
	} else {
		defer written()
	}
	var begun []*deferral.Part
	for _, p := range ended {
		if p.failed == nil {
			maps.Copy(d.found, p.found)
			begun = append(begun, d.begin(p.Part)...)
		}
	}
	return d.write(d.format.next(d, ended, begun))
}

// bound bounds the data of all parts together as that of one answer, and returns how much a part has.
func (d *delivery) bound(p *part) (length int) {
	if p.failed != nil {
		return 0
	}
	for _, r := range p.responses {
		length += len(r.Data)
	}
	if length > d.left {
		p.fail(gqlerror.List{asGraphQL(tooLong(d.maxAnswer-d.left+length, d.maxAnswer))})
		return 0
	}
	d.left -= length
	return length
}

// open sends the headers. Parts are not compressed: each has to be sent at once.
func (d *delivery) open() bool {
	h := d.a.w.Header()
	h.Set("Content-Type", d.format.media)
	h.Set("X-Accel-Buffering", "no")           // proxies that collect answers would collect all parts
	h.Set(gzhttp.HeaderNoCompression, "plain") // gzhttp takes this header off
	d.a.w.WriteHeader(http.StatusOK)
	return d.write([]byte(partsBegin))
}

// write sends a message; false if the client does not take it.
func (d *delivery) write(text []byte) bool {
	control := http.NewResponseController(d.a.w)
	for chunk := range slices.Chunk(text, writtenAtOnce) {
		deadline := time.Now().Add(writeTimeout)
		_ = control.SetWriteDeadline(deadline)
		if _, err := d.a.w.Write(chunk); err != nil || control.Flush() != nil || !time.Now().Before(deadline) { // the error of a flush does not get through gzhttp
			return false
		}
	}
	return true
}
