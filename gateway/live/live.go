// Package live answers operations over connections that stay open: WebSocket (graphql-transport-ws) and server-sent events (graphql-sse,
// distinct connections).
package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/graph/defaults"
)

// Settings are how operations are served over such connections. A zero field takes its default.
type Settings struct {
	quota.Bounds

	// Init prepares the context of a WebSocket connection by the payload of its
	// connection_init, such as {"Authorization": "Bearer …"}. If it returns an error, the
	// connection is refused. Defaults to accepting every connection by its request's headers.
	Init func(ctx context.Context, payload map[string]any) (context.Context, error)

	// Expires is when a connection with a context has to end, such as with the token
	// that opened it; zero: never. Defaults to never.
	Expires func(context.Context) time.Time

	// Party returns to whom the connection of a context belongs. Defaults to an empty party, for
	// which only Connections and ConnectionCost count.
	Party func(context.Context) quota.Party

	// Revoked calls end when a connection with a context has to end before it expires, such
	// as when the token that opened it is refused from now on. The function that it returns cancels
	// that. Defaults to never.
	Revoked func(ctx context.Context, end func()) (callOff func())

	// InitTimeout is how long a WebSocket may stay open without a connection_init.
	// Defaults to 5 s.
	InitTimeout time.Duration

	// MessageTimeout is how long one message over a WebSocket may take. Defaults to 30 s, as the body of a request.
	MessageTimeout time.Duration

	// IdleTimeout is how long a WebSocket may stay open without an operation if nobody is signed
	// in. Defaults to 60 s.
	IdleTimeout time.Duration

	// PingInterval is how often the other end is asked for a sign of life. Over WebSocket, the
	// other end has as long again to answer. Defaults to 15 s.
	PingInterval time.Duration

	// WriteTimeout is how long a client may take to receive one answer before it is
	// dropped. Defaults to 5 s.
	WriteTimeout time.Duration

	// MaxOperations is how many operations may run at once on one WebSocket. Defaults
	// to 100.
	MaxOperations int
}

// WithDefaults fills in what is zero.
func (s Settings) WithDefaults() Settings {
	s.Bounds = s.Bounds.WithDefaults()
	return defaults.For(s, Settings{
		Init:    func(ctx context.Context, _ map[string]any) (context.Context, error) { return ctx, nil },
		Expires: func(context.Context) time.Time { return time.Time{} },
		Party:   func(context.Context) quota.Party { return quota.Party{} },
		Revoked: func(context.Context, func()) func() { return func() {} },

		InitTimeout: 5 * time.Second, MessageTimeout: 30 * time.Second, IdleTimeout: time.Minute, PingInterval: 15 * time.Second, WriteTimeout: 5 * time.Second,
		MaxOperations: 100,
	})
}

// Executor makes and executes operations as they are over plain HTTP.
type Executor interface {
	// Create makes the operation of a request, or says why there is none. A text that is not known is parsed in its turn.
	Create(context.Context, *graphql.RawParams, documents.Turn) (documents.Operation, gqlerror.List)
	// Reject is the answer to a request that has no operation.
	Reject(context.Context, documents.Operation, gqlerror.List) *graphql.Response
	// Dispatch lets an operation begin.
	Dispatch(context.Context, documents.Operation) (graphql.ResponseHandler, context.Context)
	// Prepare is the context of one answer, for an operation that may be traced.
	Prepare(context.Context, *graphql.OperationContext, *traces.Span) context.Context
	// Execute announces the work of an operation to its permit; false if there is too much.
	Execute(context.Context, *quota.Permit, documents.Operation) bool
}

// Server has such connections. Its fields must be set.
type Server struct {
	Settings
	Executor
	Limiter    *quota.Limiter
	MaxMessage int64         // bytes of a message over a WebSocket
	Timeout    time.Duration // of one answer
	Metrics    *exchange.Metrics
	Traces     *traces.Traces
	Logger     *slog.Logger
	Present    graphql.ErrorPresenterFunc
	Recover    graphql.RecoverFunc
}
