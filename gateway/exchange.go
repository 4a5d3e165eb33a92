package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
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

// The names of headers and extensions.
const (
	headerRequestID = "X-Request-Id"

	// A consistency token travels as a header of request and answer, or as an extension of both.
	headerConsistency    = "Kith-Consistency"
	extensionConsistency = "consistencyToken"
	extensionStale       = "stale"

	// A request asks what it costs by a header, or by an extension that is true. The answer says so in the extension.
	headerCost    = "Kith-Cost"
	extensionCost = "cost"

	// A caller says how long it waits.
	headerGRPCTimeout = "Grpc-Timeout"
	headerTimeout     = "X-Request-Timeout"

	// headerTrace tells the caller of a traced request what its span is (W3C Trace Context, level 2).
	headerTrace = "Traceresponse"

	// extensionPersisted names a query by its hash, and parameterDocument by the id of a trusted document, after appendix A of
	// GraphQL over HTTP. It is passed on among the extensions, where a client cannot put it.
	extensionPersisted = "persistedQuery"
	parameterDocument  = "documentId"
)

// RequestID is the id of the request that a context belongs to; "" if none. It
// is in the answer's X-Request-Id, in the log, and beside masked errors.
func RequestID(ctx context.Context) string { return exchangeOf(ctx).id }

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

// upgrades reports whether a request asks to become a WebSocket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}
