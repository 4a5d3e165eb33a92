package gateway

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"kith/gateway/traces"
	"kith/graph/apierr"
)

// exchange is the state of one request and its answer, and the writer of the answer. The handlers on
// the way fill it in; the log, the metrics and the span read it at the end.
type exchange struct {
	http.ResponseWriter
	status int // 0 until something was sent
	bytes  int64

	id        string
	operation string    // query, mutation, subscription, or "" while unknown
	name      string    // of the operation, as the client says
	isTrusted bool      // its document is one of [Config.Trusted]
	outcome   outcome   // "" if the request is not GraphQL
	stream    *streamed // of a connection that stays open, otherwise nil

	span *traces.Span // nil: it is not traced

	patience time.Duration // of the caller; 0: it waits at least as long as the gateway works

	reported atomic.Int32 // causes written to the log so far

	permit permit // of a request to plain HTTP
}

// WriteHeader implements [http.ResponseWriter].
func (x *exchange) WriteHeader(status int) {
	if x.status < 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] reach the writer below.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

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

// isFailure reports whether there are errors in an answer. A refused request is a mistake of its client, and a cancelled request
// is no failure.
func (o outcome) isFailure() bool {
	return o == outcomePartial || o == outcomeError || o == outcomeTimeout
}

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

type exchangeKey struct{}

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

// ownID matches request ids that are taken over from clients. Anything
// else must not get into a log.
var ownID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// exchanging gives every request its exchange, with an id: the client's, if the request has one. At its end the exchange is
// logged.
//
// Once the gateway is stopping, each connection is closed after its next answer, so that its client connects to another
// gateway. Closing idle connections right away could cut a request that is already being sent: only the client knows whether
// there is one.
func exchanging(cfg Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{ResponseWriter: w, id: r.Header.Get(headerRequestID)}
		if !ownID.MatchString(x.id) {
			x.id = strconv.FormatUint(rand.Uint64()|1<<63, 16) // 16 digits: it distinguishes requests, and is no secret
		}
		w.Header().Set(headerRequestID, x.id)
		if cfg.stopping.Load() || r.TransferEncoding != nil { // net/http hides a Content-Length beside it, by which a proxy may find another end
			w.Header().Set("Connection", "close")
		}
		ctx := context.WithValue(r.Context(), exchangeKey{}, x)
		defer func() {
			if cfg.Logger.Enabled(ctx, cfg.AccessLevel) {
				cfg.Logger.LogAttrs(ctx, cfg.AccessLevel, "request", x.attrs(r, time.Since(start))...)
			}
		}()
		next.ServeHTTP(x, r.WithContext(ctx))
	})
}

// attrs is the line of the access log.
func (x *exchange) attrs(r *http.Request, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request_id", x.id),
		slog.String("method", r.Method),
		slog.String("path", r.URL.Path), // never the query string: it holds the query's text
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Duration("took", took),
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
	return attrs
}

// headerTrace tells the caller of a traced request what its span is (W3C Trace Context, level 2).
const headerTrace = "Traceresponse"

// traced gives each request to /graphql a span, which lasts from before the caller is identified until the answer is
// written. Operations of WebSockets have spans of their own, see [server.runOnce]; subscriptions have none: they last for
// hours.
func traced(t *traces.Traces, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		if r.Method != http.MethodOptions && !upgrades(r) {
			x.span = t.Request(r.Header)
		}
		if x.span != nil {
			w.Header().Set(headerTrace, x.span.Response())
		}
		defer func() {
			x.span.HTTP(x.id, r, x.status)
			x.span.End(string(x.outcome), x.outcome.isFailure())
		}()
		next.ServeHTTP(w, r)
	})
}
