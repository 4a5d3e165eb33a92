package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/live"
	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/gateway/trusted"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/storage"
)

// server is /graphql. gqlgen's executor answers; gqlgen has a server and transports of its own, see [server.ServeHTTP] and
// package live.
type server struct {
	Config
	whole     *ast.Schema       // what operators may ask
	prefix    selections.Prefix // that clients see
	exec      *executor.Executor
	operators *executor.Executor
	documents *documents.Documents
	costs     *limits.Costs
	origins   origins
	admission *quota.Limiter
	present   graphql.ErrorPresenterFunc
	recover   graphql.RecoverFunc
	live      *live.Server
}

func newServer(cfg Config, bounds *quota.Limiter) *server {
	var charge func(*graphql.OperationContext) (uint64, error)
	if cfg.Consistency != nil {
		charge = readToken(cfg.Consistency)
	}
	whole := cfg.Operators.Schema()
	costs, err := limits.New(whole, cfg.Limits, charge)
	if err != nil {
		panic(err)
	}
	s := &server{
		Config: cfg,
		whole:  whole,
		prefix: selections.PrefixIn(cfg.Schema),
		documents: documents.New(documents.Config{
			Schemas: selections.Schemas{Schema: cfg.Schema, Operators: cfg.Operators}, IsOperator: cfg.IsAdmin, Limits: cfg.Limits,
			Trusted: cfg.Trusted, Only: cfg.OnlyTrusted, Metrics: cfg.Metrics, Logger: cfg.Logger,
		}),
		costs:     costs,
		origins:   newOrigins(cfg.CORSOrigins, cfg.CORSHeaders, cfg.Logger),
		admission: bounds,
		present:   exchange.Presenter(cfg.Logger),
		recover:   exchange.Recovery(cfg.Logger),
	}
	s.live = &live.Server{
		Settings: cfg.Subscriptions, Executor: s, Limiter: bounds, MaxMessage: min(cfg.MaxBody, quota.MaxMessage), Timeout: cfg.RequestTimeout,
		Metrics: cfg.Metrics, Traces: cfg.Traces, Logger: cfg.Logger, Present: s.present, Recover: s.recover,
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

// Dispatch implements [live.Executor], by the schema that the caller may ask.
func (s *server) Dispatch(ctx context.Context, op documents.Operation) (graphql.ResponseHandler, context.Context) {
	exec := s.exec
	if s.IsAdmin(ctx) {
		exec = s.operators
	}
	return exec.DispatchOperation(ctx, op.OperationContext)
}

// aroundAnswers does everything around an answer. It is one middleware, because gqlgen makes a
// closure for each middleware.
func (s *server) aroundAnswers(limit selections.Limit) graphql.ResponseMiddleware {
	return func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		op := graphql.GetOperationContext(ctx)
		if op.Operation != nil && op.Operation.Operation != ast.Subscription {
			if err := s.MayAsk(ctx, op.Operation); err != nil {
				return &graphql.Response{Errors: gqlerror.List{exchange.AsGraphQL(err)}}
			}
		}
		began := time.Now()
		response := s.readYourWrites(limit.With(ctx), next)
		if asks(op, exchange.HeaderCost, exchange.ExtensionCost) {
			response = s.withCost(ctx, response)
		}
		s.noteSlow(ctx, began, response)
		response = bounded(response, s.MaxAnswer)
		if asks(op, exchange.HeaderWhy, exchange.ExtensionWhy) {
			response = withReasons(ctx, response)
		}
		return fewErrors(response)
	}
}

// maxErrors is how many errors an answer holds at most. Short requests can provoke long lists of them.
const maxErrors = 50

// bounded replaces data that is longer than most by an error. Data does not grow much beyond the bound, see
// [kith/graph/selections.Limit].
func bounded(response *graphql.Response, most int) *graphql.Response {
	if response != nil && len(response.Data) > most {
		tooLong := apierr.AnswerTooLarge.Error("the answer is longer than %d bytes: ask for fewer fields or shorter lists", most).Over(uint64(len(response.Data)), uint64(most))
		response.Data, response.Errors = []byte("null"), gqlerror.List{exchange.AsGraphQL(tooLong)}
	}
	return response
}

// fewErrors shortens a list of errors, and counts the rest.
func fewErrors(response *graphql.Response) *graphql.Response {
	if response == nil || len(response.Errors) <= maxErrors {
		return response
	}
	extend(response, "errorsOmitted", len(response.Errors)-maxErrors)
	response.Errors = response.Errors[:maxErrors]
	return response
}

// extend adds to the extensions of an answer.
func extend(response *graphql.Response, name string, value any) {
	if response.Extensions == nil {
		response.Extensions = map[string]any{}
	}
	response.Extensions[name] = value
}

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
			return 0, apierr.TokenMalformed.Error("the consistency token is malformed: send it as the answer has it")
		}
		op.Stats.SetExtension(exchange.ExtensionConsistency, token)
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
	token, _ := op.Stats.GetExtension(exchange.ExtensionConsistency).(consistency.Token)
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
	written, stale := request.Result()
	if len(written) > 0 {
		extend(response, exchange.ExtensionConsistency, tokens.Text(written))
	}
	if stale {
		extend(response, exchange.ExtensionStale, true)
	}
	return response
}

func tokenOf(op *graphql.OperationContext) string {
	token := exchange.Listed(op.Headers, exchange.HeaderConsistency)
	if more, ok := op.Extensions[exchange.ExtensionConsistency].(string); ok && more != "" {
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

// asks reports whether a request asks by a header or an extension. The header counts.
func asks(op *graphql.OperationContext, header, extension string) bool {
	if len(op.Headers[header]) > 0 {
		return op.Headers.Get(header) == "1"
	}
	asks, _ := op.Extensions[extension].(bool)
	return asks
}

// Prepare implements [live.Executor]. Rows that are read for the operation are noted in the context, if the request asks
// for that.
func (s *server) Prepare(ctx context.Context, op *graphql.OperationContext, span *traces.Span) context.Context {
	switch {
	case span != nil:
		ctx = span.Reading(ctx)
	case s.SlowOperation > 0 || asks(op, exchange.HeaderCost, exchange.ExtensionCost):
		ctx, _ = storage.CountReads(ctx, false)
	}
	if asks(op, exchange.HeaderWhy, exchange.ExtensionWhy) && s.IsAdmin(ctx) {
		ctx = context.WithValue(ctx, why.Key{}, new(why.Reasons))
	}
	return s.PerRequest(ctx)
}

// withCost adds to an answer what its operation may cost by the limit, which depends on the document and its variables
// alone. The numbers of rows that were read are for admins: they reveal edges and users that the answer does not show.
func (s *server) withCost(ctx context.Context, response *graphql.Response) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	if response == nil || op.Operation == nil {
		return response
	}
	estimated, err := s.costs.Of(op)
	if err != nil {
		return response // it is not executed
	}
	cost := map[string]any{"estimated": estimated}
	if reads := storage.ReadsOf(ctx); reads != nil && s.IsAdmin(ctx) {
		log := reads.Log()
		cost["actual"] = map[string]any{"statements": log.Statements, "rows": log.Rows}
	}
	extend(response, exchange.ExtensionCost, cost)
	return response
}

// ruleOf is the rule that an error stands for.
var ruleOf = map[any]why.Rule{
	string(apierr.CodeUnavailable): why.Shard, string(apierr.CodeTooCostly): why.Limit, string(apierr.CodeLimitReached): why.Limit,
	string(apierr.CodeRateLimited): why.Limit, string(apierr.CodeTimeout): why.Limit, string(apierr.Blocked): why.Block, string(apierr.Blocking): why.Block,
}

// withReasons adds to an answer why something is not in it, if [server.Prepare] has let the request ask that.
func withReasons(ctx context.Context, response *graphql.Response) *graphql.Response {
	reasons, asked := ctx.Value(why.Key{}).(*why.Reasons)
	if response == nil || !asked {
		return response
	}
	for _, err := range response.Errors {
		for _, name := range []any{err.Extensions["code"], err.Extensions["reason"]} {
			if rule, known := ruleOf[name]; known {
				reasons.Add(err.Path, rule, 0)
			}
		}
	}
	extend(response, exchange.ExtensionWhy, reasons.All())
	return response
}

// noteSlow logs an operation that has been executed since began, if that took long. At any time there are no more such lines
// than operations being executed. The time of an answer of a subscription begins with its event: before that, the subscription
// waits.
func (s *server) noteSlow(ctx context.Context, began time.Time, response *graphql.Response) {
	op := graphql.GetOperationContext(ctx)
	if s.SlowOperation <= 0 || op.Operation == nil {
		return // it is off, or the operation was not executed
	}
	if op.Operation.Operation == ast.Subscription {
		began = exchange.Of(ctx).Began
		if response == nil || began.IsZero() {
			return
		}
	}
	took := time.Since(began)
	if took < s.SlowOperation {
		return
	}
	attrs := append(make([]slog.Attr, 0, 12), slog.String("request_id", exchange.RequestID(ctx)), slog.String("operation", string(op.Operation.Operation)))
	if name := op.Operation.Name; name != "" {
		attrs = append(attrs, slog.String("name", apierr.Shortened(name, 100)))
	}
	attrs = append(attrs, slog.String("sha256", trusted.HashOf(op.RawQuery)), slog.Float64("took_ms", float64(took.Microseconds())/1000))
	if cost, err := s.costs.Of(op); err == nil {
		attrs = append(attrs, slog.Uint64("cost", cost))
	}
	if reads := storage.ReadsOf(ctx); reads != nil {
		log := reads.Log()
		attrs = append(attrs, slog.Int64("statements", log.Statements), slog.Int64("rows", log.Rows), slog.Any("shards", append([]int{}, log.Shards...)))
	}
	if response != nil {
		attrs = append(attrs, slog.Int("errors", len(response.Errors)))
	} else if ctx.Err() != nil {
		attrs = append(attrs, slog.String("ended", context.Cause(ctx).Error()))
	}
	if id := exchange.Of(ctx).Span.TraceID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	s.Logger.LogAttrs(ctx, slog.LevelWarn, "slow operation", attrs...)
}
