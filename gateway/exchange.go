package gateway

import (
	"context"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"kith/gateway/traces"
	"kith/graph/apierr"
)

// exchange is the state of one request and its answer. The handlers on
// the way fill it in; the log and the metrics read it at the end.
type exchange struct {
	id        string
	operation string    // query, mutation, subscription, or "" while unknown
	name      string    // of the operation, as the client says
	isTrusted bool      // its document is one of [Config.Trusted]
	outcome   outcome   // "" if the request is not GraphQL
	stream    *streamed // of a connection that stays open, otherwise nil

	span *traces.Span // nil: it is not traced

	patience time.Duration // of the caller; 0: it waits at least as long as the gateway works

	inFlight atomic.Bool // it counts as a request in flight

	reported atomic.Int32 // causes written to the log so far

	permit permit // of a request to plain HTTP

	// Values of headers that differ by request: they need no allocation here.
	idValue, lengthValue [1]string
}

// executed is the outcome of one operation of a request.
type executed struct {
	operation string
	name      string
	isTrusted bool
	outcome   outcome
	took      time.Duration
}

// outcome says how a GraphQL request ended. It is a label of the metrics, so the
// list is short and closed.
type outcome string

const (
	outcomeOK       outcome = "ok"       // data, no errors
	outcomePartial  outcome = "partial"  // data and errors
	outcomeError    outcome = "error"    // errors, no data
	outcomeTimeout  outcome = "timeout"  // the time was over for at least a part
	outcomeRefused  outcome = "refused"  // not executed: malformed, invalid, too costly …
	outcomeCanceled outcome = "canceled" // the client went away
)

// The transports of connections that stay open.
const (
	transportWebSocket = "websocket"
	transportEvents    = "sse"
)

// streamed is the state of a connection that stays open.
type streamed struct {
	transport  string // one of the above
	operations atomic.Int64
	answers    atomic.Int64
	ended      string // why
}

// counting counts an operation and the answers that a sink takes.
func (s *streamed) counting(to sink) sink {
	s.operations.Add(1)
	return countingSink{to, s}
}

type countingSink struct {
	sink
	log *streamed
}

func (c countingSink) next(response *graphql.Response) error {
	c.log.answers.Add(1)
	return c.sink.next(response)
}

type exchangeKey struct{}

// exchanging is a context with its exchange: one allocation, because every request has one.
type exchanging struct {
	context.Context
	exchange exchange
}

func (e *exchanging) Value(key any) any {
	if key == (exchangeKey{}) {
		return &e.exchange
	}
	return e.Context.Value(key)
}

// exchangeOf returns the request's exchange, or an empty one outside of a request.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// RequestID is the id of the request that a context belongs to; "" if none. It
// is in the answer's X-Request-Id, in the log, and beside masked errors.
func RequestID(ctx context.Context) string { return exchangeOf(ctx).id }

const headerRequestID = "X-Request-Id"

var canonicalRequestID = http.CanonicalHeaderKey(headerRequestID)

// ownID matches request ids that are taken over from clients. Anything
// else must not get into a log.
var ownID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identified gives every request an id: the client's, if the request has one.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerRequestID)
		if id == "" || !ownID.MatchString(id) {
			id = newID()
		}
		ctx := &exchanging{Context: r.Context(), exchange: exchange{id: id, idValue: [1]string{id}}}
		w.Header()[canonicalRequestID] = ctx.exchange.idValue[:]
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// newID returns 16 hexadecimal digits. They distinguish requests; they are no secret.
func newID() string {
	var id [8]byte
	for i, bits := 0, rand.Uint64(); i < len(id); i, bits = i+1, bits>>8 {
		id[i] = byte(bits)
	}
	return hex.EncodeToString(id[:])
}

// logged writes one line for each request.
func logged(logger *slog.Logger, level slog.Level, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !logger.Enabled(r.Context(), level) {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		recorder := &recorder{ResponseWriter: w}
		defer func() {
			x := exchangeOf(r.Context())
			attrs := []slog.Attr{
				slog.String("request_id", x.id),
				slog.String("method", r.Method),
				slog.String("path", r.URL.Path), // never the query string: it holds the query's text
				slog.Int("status", recorder.status),
				slog.Int64("bytes", recorder.bytes),
				slog.Duration("took", time.Since(start)),
				slog.String("remote", r.RemoteAddr),
			}
			if x.outcome != "" {
				attrs = append(attrs,
					slog.String("operation", x.operation),
					slog.String("name", apierr.Shortened(x.name, 100)),
					slog.String("outcome", string(x.outcome)))
			}
			if x.span != nil {
				attrs = append(attrs, slog.String("trace_id", x.span.TraceID()))
			}
			if x.stream != nil {
				attrs = append(attrs,
					slog.String("transport", x.stream.transport),
					slog.Int64("operations", x.stream.operations.Load()),
					slog.Int64("answers", x.stream.answers.Load()),
					slog.String("ended", x.stream.ended))
			}
			logger.LogAttrs(r.Context(), level, "request", attrs...)
		}()
		next.ServeHTTP(recorder, r)
	})
}

// recorder notes the outcome of an answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until something was sent
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 || r.status < 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush passes the call on; streaming answers look for it.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// headerTrace tells the caller of a traced request what its span is (W3C Trace Context, level 2).
const headerTrace = "Traceresponse"

// traced gives each request to /graphql a span, which lasts from before the caller is identified until the answer is
// written. Operations of WebSockets have spans of their own, see [streams.runOnce]; subscriptions have none: they last for
// hours.
func traced(t *traces.Traces, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions || upgrades(r) {
			next.ServeHTTP(w, r)
			return
		}
		x := exchangeOf(r.Context())
		if x.span = t.Request(r.Header); x.span == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(headerTrace, x.span.Response())
		sent := &recorder{ResponseWriter: w}
		defer func() {
			if x.span == nil {
				return // it was a subscription
			}
			x.span.HTTP(traces.Request{ID: x.id, Method: r.Method, Path: r.URL.Path, Status: sent.status})
			x.span.Outcome(string(x.outcome), x.outcome.isFailure())
			x.span.End()
		}()
		next.ServeHTTP(sent, r)
	})
}

// planning has the making of an operation in the span of its request, if there is one.
func (x *exchange) planning() (end func(known bool)) {
	if x.span == nil {
		return func(bool) {}
	}
	return x.span.Planning()
}

// describe tells a span what is executed.
func describe(span *traces.Span, op *graphql.OperationContext, cost uint64) {
	if span != nil {
		span.Operation(traces.Operation{
			Type: string(op.Operation.Operation), Name: apierr.Shortened(op.Operation.Name, 100), Text: op.RawQuery, Cost: cost,
		})
	}
}

// wasKnown reports whether an operation was made without parsing its document.
func wasKnown(op *graphql.OperationContext) bool {
	return op != nil && op.Stats.Validation.End.IsZero()
}

// isFailure reports whether there are errors in an answer. A refused request is a mistake of its client, and a cancelled request
// is no failure.
func (o outcome) isFailure() bool {
	return o == outcomePartial || o == outcomeError || o == outcomeTimeout
}
