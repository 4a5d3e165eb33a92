package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/direct"
	"kith/graph/limits"
)

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
	once := queries{cfg.Schema, presenter(cfg.Logger), recoverFunc(cfg.Logger), aroundAnswers(cfg, limit, slow)}
	exec := executor.New(cfg.Schema)
	exec.SetErrorPresenter(once.present)
	exec.SetRecoverFunc(once.recover)
	exec.Use(registered)
	exec.Use(limit)
	exec.AroundResponses(once.around)

	operations := operations{
		documents, limit, registered, cfg.Schema, cfg.HideSchema, once.recover, freshForEachMutation(cfg.PerRequest),
	}
	streams := newStreams(cfg, open, limit, slow)
	return &server{
		exec:    exec,
		sockets: webSockets{streams: streams, operations: operations, origins: origins, maxRead: min(cfg.MaxBody, maxMessageBytes)},
		plain:   newTransport(cfg, origins, streams, operations, once),
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.sockets.Supports(r) {
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
			response = withCost(ctx, response, costs, cfg.MayPlan)
		}
		if asksPlan(op) {
			response = withPlan(ctx, response)
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
