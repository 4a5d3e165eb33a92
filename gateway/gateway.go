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
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/limits"
	"kith/graph/selections"
)

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
	return newHandler(cfg, newAdmission(cfg))
}

// newHandler makes the handler. Its connections that stay open can be asked to
// end.
func newHandler(cfg Config, bounds *admission) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/graphql", endpoint(cfg, bounds))
	mux.HandleFunc("GET /healthz", serveHealth)
	if cfg.Web != nil {
		mux.Handle("/", cfg.Web)
	}
	return exchanging(cfg, recovering(cfg.Logger, mux))
}

// endpoint is /graphql: the server behind the handlers that only its requests need.
func endpoint(cfg Config, bounds *admission) http.Handler {
	s := newServer(cfg, bounds)
	ask := s.origins.handler(cfg.Identify(s))
	return traced(cfg.Traces, cfg.Metrics.counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			s.origins.watch(r)
		}
		ask.ServeHTTP(w, r)
	})))
}

// server is /graphql. gqlgen's executor answers; gqlgen has a server and transports of its own, see [server.ServeHTTP] and
// [socket].
type server struct {
	Config
	schemas    selections.Schemas
	whole      *ast.Schema       // what operators may ask
	prefix     selections.Prefix // that clients see
	exec       *executor.Executor
	operators  *executor.Executor
	documents  documents
	costs      *limits.Costs
	registered *registered
	origins    origins
	admission  *admission
	present    graphql.ErrorPresenterFunc
	recover    graphql.RecoverFunc
}

func newServer(cfg Config, bounds *admission) *server {
	var charge func(*graphql.OperationContext) (uint64, error)
	if cfg.Consistency != nil {
		charge = readToken(cfg.Consistency)
	}
	schemas := selections.Schemas{Schema: cfg.Schema, Operators: cfg.Operators}
	whole := cfg.Operators.Schema()
	costs, err := limits.New(whole, cfg.Limits, charge)
	if err != nil {
		panic(err)
	}
	s := &server{
		Config:     cfg,
		schemas:    schemas,
		whole:      whole,
		prefix:     selections.PrefixIn(cfg.Schema),
		documents:  newDocuments(cfg.Trusted, cfg.IsAdmin),
		costs:      costs,
		registered: newRegistered(cfg),
		origins:    newOrigins(cfg.CORSOrigins, cfg.CORSHeaders, cfg.Logger),
		admission:  bounds,
		present:    presenter(cfg.Logger),
		recover:    recoverFunc(cfg.Logger),
	}
	s.exec, s.operators = s.executor(cfg.Schema), s.executor(cfg.Operators)
	return s
}

func (s *server) executor(schema graphql.ExecutableSchema) *executor.Executor {
	exec := executor.New(schema)
	exec.SetErrorPresenter(s.present)
	exec.SetRecoverFunc(s.recover)
	exec.AroundResponses(s.aroundAnswers(selections.Limit(s.MaxAnswer)))
	return exec
}

// executorFor is that of the schema that the caller may ask.
func (s *server) executorFor(ctx context.Context) *executor.Executor {
	if s.IsAdmin(ctx) {
		return s.operators
	}
	return s.exec
}

// aroundAnswers does everything around an answer. It is one middleware, because gqlgen makes a
// closure for each middleware.
func (s *server) aroundAnswers(limit selections.Limit) graphql.ResponseMiddleware {
	return func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		op := graphql.GetOperationContext(ctx)
		if op.Operation != nil && op.Operation.Operation != ast.Subscription {
			if err := s.MayAsk(ctx, op.Operation); err != nil {
				return &graphql.Response{Errors: gqlerror.List{asGraphQL(err)}}
			}
		}
		began := time.Now()
		response := s.readYourWrites(limit.With(ctx), next)
		if asksCost(op) {
			response = s.withCost(ctx, response)
		}
		s.noteSlow(ctx, began, response)
		return bounded(response, s.MaxAnswer)
	}
}

// quietRules are the rules of validation without suggestions, for which rules search the schema:
// these cost time in proportion to the names in the query, and show a schema that may be hidden.
func quietRules() *rules.Rules {
	set := rules.NewDefaultRules()
	for _, quiet := range []core.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
		rules.ScalarLeafsRuleWithoutSuggestions,
		rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		set.ReplaceRule(strings.TrimSuffix(quiet.Name, "WithoutSuggestions"), quiet.RuleFunc)
	}
	return set
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

// readToken reads the consistency token of an operation for [server.readYourWrites], and returns what it adds
// to the operation's cost.
func readToken(tokens *consistency.Tokens) func(*graphql.OperationContext) (cost uint64, err error) {
	return func(op *graphql.OperationContext) (uint64, error) {
		text := tokenOf(op)
		if text == "" || op.Operation.Operation == ast.Subscription { // the answers of a subscription are read after their events
			return 0, nil
		}
		token, err := tokens.Parse(text)
		if err != nil {
			return 0, apierr.TokenMalformed.Error("the consistency token is none that this server has given")
		}
		op.Stats.SetExtension(extensionConsistency, token)
		return token.Cost(), nil
	}
}

// readYourWrites makes an operation with a token wait until the token's rows
// can be read, and puts a token for the operation's own writes into the
// answer. If the wait ends before that, the answer says that it may be stale.
func (s *server) readYourWrites(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	op, tokens := graphql.GetOperationContext(ctx), s.Consistency
	if tokens == nil || op.Operation == nil || op.Operation.Operation == ast.Subscription {
		return next(ctx) // it is not executed, or it is a subscription, whose answers are read after their events
	}
	token, _ := op.Stats.GetExtension(extensionConsistency).(consistency.Token)
	if len(token) == 0 && op.Operation.Operation == ast.Query {
		return next(ctx) // it waits for nothing and writes nothing
	}
	ctx, request := consistency.Attach(ctx)
	if len(token) > 0 && !tokens.Wait(ctx, token) {
		request.Stale()
	}
	response := next(ctx)
	if response == nil {
		return nil
	}
	if written, stale := request.Result(); len(written) > 0 || stale {
		if response.Extensions == nil {
			response.Extensions = map[string]any{}
		}
		if len(written) > 0 {
			response.Extensions[extensionConsistency] = tokens.Text(written)
		}
		if stale {
			response.Extensions[extensionStale] = true
		}
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

// freshForEachMutation prepares a new context for every root field of a mutation:
// they run one after another, and each must see what the one before it wrote.
func (s *server) freshForEachMutation(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = s.PerRequest(ctx)
	}
	return next(ctx)
}
