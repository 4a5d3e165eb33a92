package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/live"
	"kith/gateway/traces"
	"kith/gateway/trusted"
	"kith/graph/consistency"
	"kith/graph/defaults"
	"kith/graph/limits"
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

	// Identify finds out who sends a request to /graphql, and returns the request's context with that. If it returns an error, with a
	// context all the same, the request is refused. It may set headers of the answer. Defaults to no identification.
	Identify func(answer http.Header, r *http.Request) (context.Context, error)

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
	Store Pinger

	// Consistency reads the tokens of requests, and writes the tokens of
	// answers. Defaults to none: tokens are ignored.
	Consistency *consistency.Tokens

	// MaxConnections is how many connections [Serve] has open at once, those that stay open
	// included; each request over HTTP/2 counts as one more. Defaults to 20,000.
	MaxConnections int

	// Subscriptions is how operations are served over connections that stay open.
	// For its defaults see [live.Settings].
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

	// Logger takes the access log, at debug, and the causes of masked errors. Defaults to
	// [slog.Default].
	Logger *slog.Logger

	stopping *atomic.Bool // set by Serve
}

func (c Config) withDefaults() Config {
	c.Subscriptions = c.Subscriptions.WithDefaults()
	c.stopping = cmp.Or(c.stopping, new(atomic.Bool))
	return defaults.For(c, Config{
		Operators:  c.Schema,
		MayAsk:     func(context.Context, *ast.OperationDefinition) error { return nil },
		IsAdmin:    func(context.Context) bool { return false },
		PerRequest: func(ctx context.Context) context.Context { return ctx },
		Identify:   func(_ http.Header, r *http.Request) (context.Context, error) { return r.Context(), nil },
		Metrics:    exchange.NewMetrics(prometheus.NewRegistry()),
		MaxBody:    256 << 10, MaxAnswer: 16 << 20, MaxRequests: 512, MaxConnections: 20_000, RequestTimeout: 10 * time.Second,
		Logger: slog.Default(),
	})
}

// Subscriptions is how operations are served over connections that stay open.
type Subscriptions = live.Settings

// How long the HTTP server waits for its clients.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // a body of 256 KiB at 9 kB/s
	idleTimeout       = 2 * time.Minute
	writeGrace        = 30 * time.Second // to send the answer, on top of the request's own time
	maxHeaderBytes    = 64 << 10         // queries by GET are part of it
)
