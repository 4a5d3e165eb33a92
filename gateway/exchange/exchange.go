// Package exchange is what all parts of a gateway know of one request and its answer: its id, how it ended, which errors its client sees, and
// what is counted and logged of it.
package exchange

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"golang.org/x/time/rate"

	"kith/gateway/traces"
	"kith/graph/apierr"
)

// Exchange is the state of one request and its answer, and the writer of the answer. The handlers on
// the way fill it in; the log, the metrics and the span read it at the end.
type Exchange struct {
	http.ResponseWriter
	Status int // 0 until something was sent
	bytes  int64
	unread *unread // nil: nothing

	ID        string
	Operation string  // query, mutation, subscription, or "" while unknown
	Name      string  // of the operation, as the client says
	IsTrusted bool    // its document is a trusted one
	Outcome   Outcome // "" if the request is not GraphQL
	Stream    *Stream // of a connection that stays open, otherwise nil

	Span *traces.Span // nil: it is not traced

	Began time.Time // of the answer to an event: when it was begun

	Patience time.Duration // of the caller; 0: it waits at least as long as the gateway works

	logged rate.Sometimes // causes of errors
}

// ownID matches request ids that are taken over from clients. Anything
// else must not get into a log.
var ownID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Handler gives every request its exchange, with an id: the client's, if the request has one. At its end the exchange is
// logged at debug. If a handler panicked outside of GraphQL, the request is answered here.
//
// Once the gateway is stopping, each connection is closed after its next answer, so that its client connects to another
// gateway. Closing idle connections right away could cut a request that is already being sent: only the client knows whether
// there is one.
func Handler(stopping *atomic.Bool, logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &Exchange{ResponseWriter: w, unread: unreadOf(w, r), ID: r.Header.Get(HeaderRequestID), logged: rate.Sometimes{First: maxCauses, Interval: time.Minute}}
		if !ownID.MatchString(x.ID) {
			x.ID = strconv.FormatUint(rand.Uint64()|1<<63, 16) // 16 digits: it distinguishes requests, and is no secret
		}
		w.Header().Set(HeaderRequestID, x.ID)
		if stopping.Load() || r.TransferEncoding != nil { // net/http hides a Content-Length beside it, by which a proxy may find another end
			w.Header().Set("Connection", "close")
		}
		ctx := With(r.Context(), x)
		defer func() {
			switch reason := recover(); reason {
			case nil:
			case http.ErrAbortHandler: // the way to cut a connection on purpose
				defer panic(reason)
			default:
				LogPanic(ctx, logger, reason)
				http.Error(x, Masked, http.StatusInternalServerError)
			}
			if logger.Enabled(ctx, slog.LevelDebug) {
				logger.LogAttrs(ctx, slog.LevelDebug, "request", x.attrs(r, time.Since(start))...)
			}
		}()
		next.ServeHTTP(x, x.unread.of(r.WithContext(ctx)))
		x.unread.leave(x)
	})
}

// WriteHeader implements [http.ResponseWriter].
func (x *Exchange) WriteHeader(status int) {
	if x.Status < 200 {
		x.Status = status
	}
	if x.unread.isLeft() && !x.unread.shares {
		x.Header().Set("Connection", "close")
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *Exchange) Write(b []byte) (int, error) {
	if x.Status == 0 {
		x.Status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] reach the writer below.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// SetHeaders sets the headers that every answer has.
func (x *Exchange) SetHeaders(contentType string) {
	h := x.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h["Vary"] = append(h["Vary"], "Accept-Encoding", "Accept")
}

// A request may be answered before its body has been read, such as one that is too large. If the connection were closed while the client still
// sends, it would be reset, and the answer lost: a proxy answers 502 and takes the gateway out of use for a while. So the rest is read, and left,
// as section 9.6 of RFC 9112 advises. net/http itself does so for 256 KB, and over HTTP/2 not at all: it resets the stream behind the answer, which HAProxy
// and curl then may not take.
const (
	readByItself = 256 << 10
	mostUnread   = 8 << 20 // more than proxies take by default: nginx has 1 MiB
	unreadTime   = time.Second
)

// unread is the body of a request that may be longer than what net/http reads by itself.
type unread struct {
	io.ReadCloser
	ended  bool
	shares bool // the connection with other requests (HTTP/2)
}

func (u *unread) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.ended = u.ended || err != nil
	return n, err
}

// unreadOf is the body of a request; nil if that is shorter.
func unreadOf(w http.ResponseWriter, r *http.Request) *unread {
	shares := r.ProtoMajor > 1
	if r.ContentLength == 0 || r.ContentLength > 0 && r.ContentLength <= readByItself && !shares {
		return nil
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // otherwise there is no reading after the answer
	return &unread{ReadCloser: r.Body, shares: shares}
}

// of is the request with this body. The server's own request keeps its body, from which it finds out how to end the connection.
func (u *unread) of(r *http.Request) *http.Request {
	if u != nil {
		r.Body = u
	}
	return r
}

// isLeft reports whether the client may still send a part of it.
func (u *unread) isLeft() bool { return u != nil && !u.ended }

// leave reads what the client still sends after the answer.
func (u *unread) leave(w http.ResponseWriter) {
	if !u.isLeft() {
		return
	}
	control := http.NewResponseController(w)
	if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(unreadTime)) == nil {
		_, _ = io.CopyN(io.Discard, u, mostUnread)
	}
}

// CloseAfter has the connection closed after the answer. A connection of HTTP/2 stays open: it has other
// requests on it.
func (x *Exchange) CloseAfter(r *http.Request) {
	if r.ProtoMajor < 2 {
		x.Header().Set("Connection", "close")
	}
}

// Outcome says how a GraphQL request ended. It is a label of the metrics, so the
// list is short and closed.
type Outcome string

// The outcomes.
const (
	OK       Outcome = "ok"       // data, no errors
	Partial  Outcome = "partial"  // data and errors
	Error    Outcome = "error"    // errors, no data
	Timeout  Outcome = "timeout"  // the time was over for at least a part
	Refused  Outcome = "refused"  // not executed: malformed, invalid, too costly …
	Canceled Outcome = "canceled" // the client went away
)

// IsFailure reports whether there are errors in an answer. A refused request is a mistake of its client, and a cancelled request
// is no failure.
func (o Outcome) IsFailure() bool {
	return o == Partial || o == Error || o == Timeout
}

// The transports of connections that stay open.
const (
	WebSocket = "websocket"
	Events    = "sse"
)

// Stream is the state of a connection that stays open.
type Stream struct {
	Transport  string // one of the above
	Operations atomic.Int64
	Answers    atomic.Int64
	Ended      string // why
}

type key struct{}

// With is a context with an exchange.
func With(ctx context.Context, x *Exchange) context.Context { return context.WithValue(ctx, key{}, x) }

// Of returns the request's exchange, or an empty one outside of a request.
func Of(ctx context.Context) *Exchange {
	if x, ok := ctx.Value(key{}).(*Exchange); ok {
		return x
	}
	return &Exchange{}
}

// The names of headers and extensions.
const (
	HeaderRequestID = "X-Request-Id"

	// A consistency token travels as a header of request and answer, or as an extension of both.
	HeaderConsistency    = "Kith-Consistency"
	ExtensionConsistency = "consistencyToken"
	ExtensionStale       = "stale"

	// A request asks what it costs by a header, or by an extension that is true. The answer says so in the extension.
	HeaderCost    = "Kith-Cost"
	ExtensionCost = "cost"

	// An operator asks in the same ways why something is not in the answer, which says so in the extension.
	HeaderWhy    = "Kith-Why"
	ExtensionWhy = "why"

	// A caller says how long it waits.
	HeaderGRPCTimeout = "Grpc-Timeout"
	HeaderTimeout     = "X-Request-Timeout"

	// HeaderTrace tells the caller of a traced request what its span is (W3C Trace Context, level 2).
	HeaderTrace = "Traceresponse"

	// ExtensionPersisted names a query by its hash, and ParameterDocument by the id of a trusted document, after appendix A of
	// GraphQL over HTTP. It is passed on among the extensions, where a client cannot put it.
	ExtensionPersisted = "persistedQuery"
	ParameterDocument  = "documentId"
)

// Listed is what a header lists, which may be on several lines (RFC 9110, section 5.3).
func Listed(h http.Header, name string) string { return strings.Join(h.Values(name), ",") }

// RequestID is the id of the request that a context belongs to; "" if none. It
// is in the answer's X-Request-Id, in the log, and beside masked errors.
func RequestID(ctx context.Context) string { return Of(ctx).ID }

// Upgrades reports whether a request asks to become a WebSocket.
func Upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// attrs is the line of the access log.
func (x *Exchange) attrs(r *http.Request, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request_id", x.ID),
		slog.String("method", r.Method),
		slog.String("path", r.URL.Path), // never the query string: it holds the query's text
		slog.Int("status", x.Status),
		slog.Int64("bytes", x.bytes),
		slog.Duration("took", took),
		slog.String("remote", r.RemoteAddr),
	}
	if x.Outcome != "" {
		attrs = append(attrs,
			slog.String("operation", x.Operation),
			slog.String("name", apierr.Shortened(x.Name, 100)),
			slog.String("outcome", string(x.Outcome)))
	}
	if x.Span != nil {
		attrs = append(attrs, slog.String("trace_id", x.Span.TraceID()))
	}
	if x.Stream != nil {
		attrs = append(attrs,
			slog.String("transport", x.Stream.Transport),
			slog.Int64("operations", x.Stream.Operations.Load()),
			slog.Int64("answers", x.Stream.Answers.Load()),
			slog.String("ended", x.Stream.Ended))
	}
	return attrs
}

// InTime is a response, or the error that explains why there is none: gqlgen returns none once the
// context is done.
func InTime(ctx context.Context, response *graphql.Response) *graphql.Response {
	if response == nil {
		return &graphql.Response{Errors: gqlerror.List{AsGraphQL(overdue(ctx))}}
	}
	return response
}

// Envelope is what surrounds the data of a response: errors come first, as the specification
// advises, then the data as gqlgen wrote it. encoding/json would scan and copy all of it again.
// Data that is nil is left out.
func Envelope(response *graphql.Response) (head, tail []byte) {
	head, tail = headOfData, tailOfAll
	if len(response.Errors) > 0 {
		head = AppendJSON([]byte(`{"errors":`), response.Errors)
		if response.Data != nil {
			head = append(head, `,"data":`...)
		}
	} else if response.Data == nil {
		head = []byte{'{'}
	}
	if len(response.Extensions) > 0 {
		tail = []byte(`,"extensions":`)
		if len(head) == 1 {
			tail = tail[1:]
		}
		tail = append(AppendJSON(tail, response.Extensions), '}')
	}
	return head, tail
}

// The bytes around the data of most answers.
var headOfData, tailOfAll = []byte(`{"data":`), []byte{'}'}

// AppendResponse writes a response on one line, and what follows it.
func AppendResponse(to []byte, response *graphql.Response, end string) []byte {
	head, tail := Envelope(response)
	start := len(to)
	to = slices.Concat(to, head, response.Data, tail, []byte(end))
	for i, c := range to[start : len(to)-len(end)] {
		if c == '\n' { // this one is between values: within strings it is escaped
			to[start+i] = ' '
		}
	}
	return to
}

// AppendJSON writes a value that has a form in JSON.
func AppendJSON(to []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // messages, paths and extensions are plain values
	}
	return append(to, text...)
}
