package traces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"kith/graph/apierr"
	"kith/storage"
)

// A Span is the span of a request or of an operation of a list. A nil Span is one that is not sampled: its methods do
// nothing.
type Span struct {
	traces *Traces
	ctx    context.Context //nolint:containedctx // what the library makes children by
	span   trace.Span
	reads  *storage.ReadStats
}

// Request begins the span of a request with such headers; nil if it is not sampled. Traceparent and tracestate give its
// parent, and say whether it is sampled; baggage is not read.
func (t *Traces) Request(h http.Header) *Span {
	if t == nil {
		return nil
	}
	parent := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	ctx, span := t.tracer.Start(parent, "request", trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return nil
	}
	return &Span{traces: t, ctx: ctx, span: span}
}

// TraceID is the id of the trace, 32 hexadecimal digits; "" of nil.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Response is the span as it is reported to the caller, in the form of traceparent; "" of nil.
func (s *Span) Response() string {
	if s == nil {
		return ""
	}
	c := s.span.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// Operation says what is executed, and what it costs by the limit. The span is named after the operation's type. Of the
// document there is only a hash.
func (s *Span) Operation(op *graphql.OperationContext, cost uint64) {
	if s == nil {
		return
	}
	kind, hash := string(op.Operation.Operation), sha256.Sum256([]byte(op.RawQuery))
	s.span.SetName(kind)
	s.span.SetAttributes(attribute.String("graphql.operation.type", kind), attribute.Int64("kith.cost", int64(cost)),
		attribute.String("graphql.document.hash", "sha256:"+hex.EncodeToString(hash[:])))
	if name := op.Operation.Name; name != "" {
		s.span.SetAttributes(attribute.String("graphql.operation.name", apierr.Shortened(name, 100)))
	}
}

// Plan makes the span of parsing, checking and planning a document, which ends now; known says that this had been done before.
func (s *Span) Plan(began time.Time, known bool) {
	_, span := s.traces.tracer.Start(s.ctx, "plan", trace.WithTimestamp(began), trace.WithAttributes(attribute.Bool("kith.document.known", known)))
	span.End()
}

// Reading returns a context under which all reads are noted.
func (s *Span) Reading(ctx context.Context) context.Context {
	if s != nil {
		ctx, s.reads = storage.CountReads(ctx, true)
	}
	return ctx
}

// HTTP says how the operation was asked for and answered over HTTP.
func (s *Span) HTTP(id string, r *http.Request, status int) {
	if s != nil {
		s.span.SetAttributes(attribute.String("kith.request_id", id), attribute.String("http.request.method", r.Method),
			attribute.String("url.path", r.URL.Path), attribute.Int("http.response.status_code", status))
	}
}

// End ends the span, after the spans of what was read. It says how the operation ended, if that is known, and whether that is
// a failure.
func (s *Span) End(outcome string, failed bool) {
	if s == nil {
		return
	}
	if outcome != "" {
		s.span.SetAttributes(attribute.String("kith.outcome", outcome))
	}
	if failed {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String("error.type", outcome))
	}
	if s.reads != nil {
		s.told(s.reads)
	}
	s.span.End()
}

// told makes spans for what was read.
func (s *Span) told(reads *storage.ReadStats) {
	now := time.Now()
	log := reads.Log()
	s.span.SetAttributes(attribute.Int64("kith.statements", log.Statements), attribute.Int64("kith.rows", log.Rows),
		attribute.Int64("kith.hits.memory", log.Memory), attribute.Int64("kith.hits.redis", log.Redis))
	if log.LeftOut > 0 {
		s.span.SetAttributes(attribute.Int("kith.spans.left_out", log.LeftOut))
	}
	of := make([][]storage.Read, len(log.Bundles))
	for _, one := range log.Reads {
		if one.Bundle < 0 {
			s.statement(s.ctx, one)
		} else {
			of[one.Bundle] = append(of[one.Bundle], one)
		}
	}
	for i, b := range log.Bundles {
		s.lookUp(b, of[i], now)
	}
}

// lookUp makes the span of look-ups that were asked for together. The span of look-ups that are still
// being read ends now.
func (s *Span) lookUp(b storage.ReadBundle, statements []storage.Read, now time.Time) {
	kinds, keys, all := make([]string, len(b.Asked)), make([]int, len(b.Asked)), 0
	for i, a := range b.Asked {
		kinds[i], keys[i] = a.Lookup, a.Keys
		all += a.Keys
	}
	var shards []int
	rows := 0
	for _, one := range statements {
		rows += one.Rows
		if at, found := slices.BinarySearch(shards, one.Shard); !found {
			shards = slices.Insert(shards, at, one.Shard)
		}
	}
	ctx, span := s.traces.tracer.Start(s.ctx, "look-up "+strings.Join(kinds, " "), trace.WithTimestamp(b.Began), trace.WithAttributes(
		attribute.StringSlice("kith.lookup.kinds", kinds), attribute.IntSlice("kith.lookup.keys", keys), attribute.Int("kith.keys", all),
		attribute.Int("kith.hits.memory", b.Memory), attribute.Int("kith.hits.redis", b.Redis),
		attribute.IntSlice("kith.shards", shards), attribute.Int("kith.rows", rows)))
	for _, one := range statements {
		s.statement(ctx, one)
	}
	if b.Ended.IsZero() {
		b.Ended = now
	}
	span.End(trace.WithTimestamp(b.Ended))
}

// statement makes the span of a statement. It has neither text nor arguments, and of an error only its class: the
// rest could reveal users.
func (s *Span) statement(parent context.Context, one storage.Read) {
	_, span := s.traces.tracer.Start(parent, "sql "+one.Lookup, trace.WithTimestamp(one.Ended.Add(-one.Took)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(s.traces.database, attribute.String("db.query.summary", one.Lookup), attribute.String("db.namespace", "shard"+strconv.Itoa(one.Shard)),
			attribute.Int("kith.shard", one.Shard), attribute.Int("kith.keys", one.Keys), attribute.Int("db.response.returned_rows", one.Rows)))
	if one.Err != nil {
		span.SetStatus(codes.Error, "")
		class := "_OTHER"
		if errors.Is(one.Err, storage.ErrUnavailable) {
			class = "unavailable"
		}
		span.SetAttributes(attribute.String("error.type", class))
	}
	span.End(trace.WithTimestamp(one.Ended))
}
