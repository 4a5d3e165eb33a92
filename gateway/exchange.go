package gateway

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"kith/gateway/traces"
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
