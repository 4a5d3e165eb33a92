package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/gateway/trusted"
	"kith/graph/consistency"
	"kith/graph/limits"
	"kith/storage"
)

// Config is what a gateway serves and how. Schema is required; a zero field
// takes its default.
type Config struct {
	// Schema answers the queries.
	Schema graphql.ExecutableSchema

	// Operators answers the queries of callers for whom IsAdmin holds: it has all fields of Schema, with the same definitions, and
	// more, which do not exist for others. Defaults to Schema.
	Operators graphql.ExecutableSchema

	// PerRequest prepares the context of an operation that is about to be
	// executed, such as by putting loaders into it. Defaults to nothing.
	PerRequest func(context.Context) context.Context

	// Identify finds out who sends a request to /graphql and puts that into its context, or refuses
	// it. Defaults to no identification.
	Identify func(http.Handler) http.Handler

	// MayAsk refuses an operation as a whole, depending on who asks. It is not called for
	// subscriptions: their fields refuse. Defaults to refusing none.
	MayAsk func(context.Context, *ast.OperationDefinition) error

	// Limits bounds each query. For its defaults see [limits.Limits].
	Limits limits.Limits

	// Trusted are the documents that clients may name by their ids. Defaults to none.
	Trusted *trusted.Documents

	// OnlyTrusted is what happens to all other documents. Defaults to [documents.TrustAll].
	OnlyTrusted documents.OnlyTrusted

	// HideSchema refuses introspection. Defaults to false.
	HideSchema bool

	// MaxBody is how many bytes a request's body may have. Defaults to 256 KiB.
	MaxBody int64

	// MaxAnswer is how many bytes the data of an answer may have. Defaults to 16 MiB.
	MaxAnswer int

	// MaxRequests is how many requests may be in work at once. Defaults to 512. As many may
	// wait for a second; the next are answered 503. See [quota.Limiter.Admit].
	MaxRequests int

	// RequestTimeout is how long an operation may take. After that, missing fields
	// become errors with the code TIMEOUT. Defaults to 10 s.
	RequestTimeout time.Duration

	// CORSOrigins are the front ends of other origins, such as
	// "https://app.example.org"; "https://*.example.org" and "*" work, too.
	// Defaults to none.
	CORSOrigins []string

	// CORSHeaders are headers that pages of CORSOrigins may send besides those that Kith reads
	// and those of tracing and of Apollo Client, which they may always send. Defaults to none.
	CORSHeaders []string

	// Store is asked for its shards by /readyz. Defaults to none: then the Checks decide.
	Store storage.Pinger

	// Consistency reads the tokens of requests, and writes the tokens of
	// answers. Defaults to none: tokens are ignored.
	Consistency *consistency.Tokens

	// H2C makes [Serve] speak HTTP/2 without TLS to clients that begin with it (prior knowledge), in addition to HTTP/1.1.
	// Defaults to false.
	H2C bool

	// MaxConnections is how many connections [Serve] has open at once, those that stay open
	// included; each request over HTTP/2 counts as one more. Defaults to 20,000.
	MaxConnections int

	// Subscriptions is how operations are served over connections that stay open.
	// For its defaults see [Subscriptions].
	Subscriptions Subscriptions

	// StopDelay is how long [Serve] continues to answer once its context is done, while /readyz says that
	// it is not ready, so that load balancers send requests elsewhere first. Defaults to 0: not at all.
	StopDelay time.Duration

	// Checks are further questions of /readyz. Defaults to none.
	Checks []Check

	// Metrics counts requests. Defaults to none.
	Metrics *exchange.Metrics

	// Traces makes spans of operations. Defaults to none.
	Traces *traces.Traces

	// Gatherer is what /metrics shows, see [Config.Admin]. Defaults to none.
	Gatherer prometheus.Gatherer

	// Web serves every other path. Defaults to none: they are not found.
	Web http.Handler

	// SlowOperation is how long the execution of an operation may take before it is logged. Defaults to 0: none is logged.
	SlowOperation time.Duration

	// IsAdmin reports whether the caller may ask Operators, and know how many rows were read for an answer. Defaults to no
	// caller.
	IsAdmin func(context.Context) bool

	// Logger takes the access log and the causes of masked errors. Defaults to
	// [slog.Default].
	Logger *slog.Logger

	// AccessLevel is the level of the access log's lines. Defaults to info.
	AccessLevel slog.Level

	stopping *atomic.Bool // set by Serve
}

func (c Config) withDefaults() Config {
	if c.MayAsk == nil {
		c.MayAsk = func(context.Context, *ast.OperationDefinition) error { return nil }
	}
	if c.IsAdmin == nil {
		c.IsAdmin = func(context.Context) bool { return false }
	}
	if c.Operators == nil {
		c.Operators = c.Schema
	}
	if c.PerRequest == nil {
		c.PerRequest = func(ctx context.Context) context.Context { return ctx }
	}
	if c.Identify == nil {
		c.Identify = func(next http.Handler) http.Handler { return next }
	}
	if c.Metrics == nil {
		c.Metrics = exchange.NewMetrics(prometheus.NewRegistry())
	}
	c.MaxBody = cmp.Or(c.MaxBody, 256<<10)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 16<<20)
	c.MaxRequests = cmp.Or(c.MaxRequests, 512)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 10*time.Second)
	c.MaxConnections = cmp.Or(c.MaxConnections, 20_000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.stopping = cmp.Or(c.stopping, new(atomic.Bool))
	c.Subscriptions = c.Subscriptions.withDefaults()
	return c
}

// Subscriptions is how operations are served over connections that stay open:
// WebSocket (graphql-transport-ws) and server-sent events (graphql-sse, distinct
// connections). A zero field takes its default.
type Subscriptions struct {
	// Init prepares the context of a WebSocket connection by the payload of its
	// connection_init, such as {"Authorization": "Bearer …"}. If it returns an error, the
	// connection is refused. Defaults to accepting every connection by its request's headers.
	Init func(ctx context.Context, payload map[string]any) (context.Context, error)

	// Expires is when a connection with a context has to end, such as with the token
	// that opened it; zero: never. Defaults to never.
	Expires func(context.Context) time.Time

	// Party returns to whom the connection of a context belongs. Defaults to an empty party, for
	// which only MaxConnections and MaxConnectionCost count.
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

	// MaxConnections is how many connections may be open at once. Defaults to 10,000.
	MaxConnections int

	// MaxAddressConnections is how many of them one address may have. Defaults to 1,000.
	MaxAddressConnections int

	// MaxUserConnections is how many of them one user may have. Defaults to 200.
	MaxUserConnections int

	// MaxUserSubscriptions is how many subscriptions one user may have, on all
	// connections. Defaults to 1,000.
	MaxUserSubscriptions int

	// MaxConnectionCost is how much the subscriptions of one connection may cost together
	// (see [limits.Costs]). Defaults to 10,000.
	MaxConnectionCost uint64

	// MaxUserCost is how much the subscriptions of one user may cost together. Defaults to 20,000:
	// all of them may be answered for one event.
	MaxUserCost uint64

	// MaxAnswers is how many answers are worked on at once; a quarter of it is how many for one
	// user. Defaults to 8 for each processor.
	MaxAnswers int

	// MaxOperations is how many operations may run at once on one WebSocket. Defaults
	// to 100.
	MaxOperations int
}

func (s Subscriptions) withDefaults() Subscriptions {
	if s.Init == nil {
		s.Init = func(ctx context.Context, _ map[string]any) (context.Context, error) { return ctx, nil }
	}
	if s.Expires == nil {
		s.Expires = func(context.Context) time.Time { return time.Time{} }
	}
	if s.Party == nil {
		s.Party = func(context.Context) quota.Party { return quota.Party{} }
	}
	if s.Revoked == nil {
		s.Revoked = func(context.Context, func()) func() { return func() {} }
	}
	s.InitTimeout = cmp.Or(s.InitTimeout, 5*time.Second)
	s.MessageTimeout = cmp.Or(s.MessageTimeout, readTimeout)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, time.Minute)
	s.PingInterval = cmp.Or(s.PingInterval, 15*time.Second)
	s.WriteTimeout = cmp.Or(s.WriteTimeout, 5*time.Second)
	s.MaxConnections = cmp.Or(s.MaxConnections, 10_000)
	s.MaxAddressConnections = cmp.Or(s.MaxAddressConnections, 1_000)
	s.MaxUserConnections = cmp.Or(s.MaxUserConnections, 200)
	s.MaxUserSubscriptions = cmp.Or(s.MaxUserSubscriptions, 1_000)
	s.MaxConnectionCost = cmp.Or(s.MaxConnectionCost, 10_000)
	s.MaxUserCost = cmp.Or(s.MaxUserCost, 20_000)
	s.MaxAnswers = cmp.Or(s.MaxAnswers, 4*runtime.GOMAXPROCS(0))
	s.MaxOperations = cmp.Or(s.MaxOperations, 100)
	return s
}

// How long the HTTP server waits for its clients.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // a body of 256 KiB at 9 kB/s
	idleTimeout       = 2 * time.Minute
	writeGrace        = 30 * time.Second // to send the answer, on top of the request's own time
	maxHeaderBytes    = 64 << 10         // queries by GET are part of it
)
