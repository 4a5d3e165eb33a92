// Package gateway is Kith's HTTP surface: GraphQL over HTTP, the pages of the
// web folder, and, at an address of their own, health, readiness, metrics and profiles.
//
// GraphQL follows the GraphQL-over-HTTP specification; the public audit suite finds no violation
// (see audit_test.go). Errors of every kind, those of HTTP included, are GraphQL responses with
// `extensions.code` and `extensions.retryable`.
package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/klauspost/compress/gzhttp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/direct"
	"kith/graph/limits"
)

// minCompressed is the size from which an answer is compressed. Below it, at most one packet is
// saved.
const minCompressed = 1 << 10

// New makes the handler of the public surface:
//
//	/graphql   queries by POST and GET, subscriptions by WebSocket and server-sent events
//	/healthz   200 as long as the process serves
//	/          cfg.Web
//
// What operators need is in [Config.Admin].
//
// Connections that stay open end only with their clients or when their time is over. The program uses
// [Serve], which also ends them before it stops; New is for callers that have a server already, such
// as [net/http/httptest].
//
// It panics on a schema that the limits cannot cost, which is a mistake in the
// program.
func New(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	return newHandler(cfg, newConnections(cfg.Subscriptions))
}

// newHandler makes the handler. Its connections that stay open can be asked to
// end.
func newHandler(cfg Config, open *connections) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/graphql", endpoint(cfg, open))
	mux.HandleFunc("GET /healthz", serveHealth)
	if cfg.Web != nil {
		mux.Handle("/", cfg.Web)
	}

	var h http.Handler = mux
	h = compressed(h)
	h = sendingAway(cfg.stopping, h)
	h = recovering(cfg.Logger, h)
	h = logged(cfg.Logger, cfg.AccessLevel, h)
	return identified(h)
}

// endpoint is /graphql: the server behind the handlers that only its requests need.
func endpoint(cfg Config, open *connections) http.Handler {
	origins := newOrigins(cfg.CORSOrigins, cfg.CORSHeaders)
	var h http.Handler = newServer(cfg, origins, open)
	h = cfg.Identify(h)
	h = origins.handler(h)
	h = cfg.Metrics.counted(h)
	return traced(cfg.Traces, h)
}

// compressed compresses long answers, except for WebSockets, which take over the
// connection itself.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed),
		gzhttp.CompressionLevel(1), // the higher levels save little more and take far longer
		gzhttp.EnableZstd(false),   // every client speaks gzip, with less memory held for each
	)
	if err != nil {
		panic(err) // only for options that contradict each other
	}
	compressing := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if upgrades(r) {
			next.ServeHTTP(w, r)
			return
		}
		compressing.ServeHTTP(w, r)
	})
}

// upgrades reports whether a request asks to become a WebSocket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// Once the gateway is stopping, sendingAway closes each connection after its next answer, so that its
// client connects to another gateway. Closing idle connections right away could cut a request that is
// already being sent: only the client knows whether there is one.
func sendingAway(stopping *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// server is /graphql: gqlgen's executor and its transports. gqlgen has a server of its own, which
// copies every request to put the time into its context.
type server struct {
	exec    *executor.Executor
	sockets webSockets
	plain   transport
}

// newServer sets gqlgen up. The order of the extensions matters: persisted queries
// fill in the text that the limits check.
func newServer(cfg Config, origins origins, open *connections) *server {
	documents := newDocuments(cfg.Trusted)
	registered := newRegistered(cfg)
	limit := limits.New(cfg.Limits, documents)
	if cfg.Consistency != nil {
		limit.Charge(readToken(cfg.Consistency))
	}

	slow := slowLog{cfg.SlowOperation, limit, cfg.Logger}
	exec := executor.New(cfg.Schema)
	exec.SetErrorPresenter(presenter(cfg.Logger))
	exec.SetRecoverFunc(recoverFunc(cfg.Logger))
	exec.Use(registered)
	exec.Use(limit)
	exec.AroundResponses(aroundAnswers(cfg, limit, slow))

	operations := operations{
		documents, limit, registered, cfg.Schema, cfg.HideSchema, recoverFunc(cfg.Logger), freshForEachMutation(cfg.PerRequest),
	}
	streams := newStreams(cfg, open, limit, slow)
	return &server{
		exec:    exec,
		sockets: webSockets{streams: streams, operations: operations, origins: origins, maxRead: min(cfg.MaxBody, maxMessageBytes)},
		plain:   newTransport(cfg, origins, streams, operations),
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if upgrades(r) {
		s.sockets.Do(w, r.WithContext(graphql.StartOperationTrace(r.Context())), s.exec)
		return
	}
	s.plain.Do(w, r, s.exec)
}

// aroundAnswers does everything around an answer. It is one middleware, because gqlgen makes a
// closure for each middleware.
func aroundAnswers(cfg Config, costs *limits.Extension, slow slowLog) graphql.ResponseMiddleware {
	limit := direct.Limit(cfg.MaxAnswer)
	return func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		op := graphql.GetOperationContext(ctx)
		if err := cfg.refuses(ctx, op); err != nil {
			return &graphql.Response{Errors: gqlerror.List{asGraphQL(err)}}
		}
		ctx = limit.With(ctx)
		var began time.Time
		if slow.from > 0 {
			began = time.Now()
		}
		var response *graphql.Response
		if cfg.Consistency == nil {
			response = next(ctx)
		} else {
			response = readYourWrites(ctx, cfg.Consistency, next)
		}
		if asksCost(op) {
			response = withCost(ctx, response, costs, cfg.IsAdmin)
		}
		if slow.from > 0 {
			slow.note(ctx, began, response)
		}
		return bounded(response, cfg.MaxAnswer)
	}
}

// quietRules are the rules of validation without suggestions, for which rules search the schema:
// these cost time in proportion to the names in the query, and show a schema that may be hidden.
func quietRules() *rules.Rules {
	set := rules.NewDefaultRules()
	set.RemoveRule(rules.FieldsOnCorrectTypeRule.Name)
	set.RemoveRule(rules.ScalarLeafsRule.Name)
	set.RemoveRule(rules.KnownArgumentNamesRule.Name)
	set.RemoveRule(rules.KnownTypeNamesRule.Name)
	set.RemoveRule(rules.ValuesOfCorrectTypeRule.Name)
	for _, rule := range []core.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
		rules.ScalarLeafsRuleWithoutSuggestions,
		rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		set.AddRule(rule.Name, rule.RuleFunc)
	}
	return set
}

// textCache does not keep long texts: a client that sends one can send it again.
type textCache struct{ *cache[string] }

func (c textCache) Add(ctx context.Context, hash, text string) {
	if len(text) <= maxPersistedLength {
		c.cache.Add(ctx, hash, text)
	}
}

// Where a consistency token travels: as a header of request and answer, or as an
// extension of both.
const (
	headerConsistency    = "Kith-Consistency"
	extensionConsistency = "consistencyToken"
	extensionStale       = "stale"

	// maxTokenHeader is how long a token may be that is answered as a header: proxies refuse
	// headers of more than 4 kB. A longer token, of a request with a hundred writes, is only in the
	// extension.
	maxTokenHeader = 4000
)

// readToken reads the consistency token of an operation for [readYourWrites], and returns what it adds
// to the operation's cost.
func readToken(tokens *consistency.Tokens) func(*graphql.OperationContext) (cost uint64, err error) {
	return func(op *graphql.OperationContext) (uint64, error) {
		text := tokenOf(op)
		if text == "" || op.Operation.Operation == ast.Subscription { // the answers of a subscription are read after their events
			return 0, nil
		}
		token, err := tokens.Parse(text)
		if err != nil {
			return 0, apierr.BadInput("the consistency token is none that this server has given")
		}
		op.Stats.SetExtension(extensionConsistency, token)
		return token.Cost(), nil
	}
}

// readYourWrites makes an operation with a token wait until the token's rows
// can be read, and puts a token for the operation's own writes into the
// answer. If the wait ends before that, the answer says that it may be stale.
func readYourWrites(ctx context.Context, tokens *consistency.Tokens, next graphql.ResponseHandler) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	if op.Operation == nil || op.Operation.Operation == ast.Subscription {
		return next(ctx) // it is not executed, or it is a subscription, whose answers are read after their events
	}
	token, _ := op.Stats.GetExtension(extensionConsistency).(consistency.Token)
	if len(token) == 0 && op.Operation.Operation == ast.Query {
		return next(ctx) // it waits for nothing and writes nothing
	}
	ctx, request := consistency.Attach(ctx)
	if !tokens.Wait(ctx, token) {
		request.Stale()
	}
	response := next(ctx)
	if response == nil {
		return nil
	}
	if written, stale := request.Result(); len(written) > 0 || stale {
		response.Extensions = extended(response.Extensions, tokens.Text(written), stale)
	}
	return response
}

func tokenOf(op *graphql.OperationContext) string {
	token := op.Headers.Get(headerConsistency)
	if more, ok := op.Extensions[extensionConsistency].(string); ok && more != "" {
		token += "," + more
	}
	return token
}

func extended(extensions map[string]any, written string, stale bool) map[string]any {
	if extensions == nil {
		extensions = map[string]any{}
	}
	if written != "" {
		extensions[extensionConsistency] = written
	}
	if stale {
		extensions[extensionStale] = true
	}
	return extensions
}

// freshForEachMutation prepares a new context for every root field of a mutation:
// they run one after another, and each must see what the one before it wrote.
func freshForEachMutation(prepare func(context.Context) context.Context) graphql.RootFieldMiddleware {
	return func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
			ctx = prepare(ctx)
		}
		return next(ctx)
	}
}

// refuses says why an operation as a whole is refused; nil if it is not.
func (c Config) refuses(ctx context.Context, op *graphql.OperationContext) error {
	if op.Operation == nil || op.Operation.Operation == ast.Subscription {
		return nil
	}
	return c.MayAsk(ctx, op.Operation)
}
