package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/apierr"
	"kith/graph/limits"
)

// newServer sets gqlgen up. The order of what is used matters: persisted queries
// fill in the text that the limits check.
func newServer(cfg Config, origins origins, open *connections) *handler.Server {
	documents := newCache(queryCacheEntries, queryCacheBytes, func(text string, _ *ast.QueryDocument) int {
		return len(text) * documentBytesFactor
	})
	limit := limits.New(cfg.Limits, documents)

	server := handler.New(cfg.Schema)
	streams := newStreams(cfg, open)
	server.AddTransport(webSockets{streams: streams, origins: origins, maxRead: cfg.MaxBody})
	server.AddTransport(newTransport(cfg, origins, streams))
	server.SetQueryCache(documents)
	server.SetParserTokenLimit(limit.Tokens())
	server.SetDisableSuggestion(true)
	server.SetValidationRulesFn(quietRules)
	server.SetErrorPresenter(presenter(cfg.Logger))
	server.SetRecoverFunc(recoverFunc(cfg.Logger))
	server.Use(newPersistedQueries())
	server.Use(limit)
	if !cfg.HideSchema {
		server.Use(extension.Introspection{})
	}
	server.AroundResponses(capErrors)
	if cfg.Edges != nil {
		server.AroundResponses(readYourWrites(cfg.Edges, cfg.ConsistencyWait))
	}
	server.AroundRootFields(freshForEachMutation(cfg.PerRequest))
	return server
}

// quietRules are the rules of validation without those that search the schema
// for what may have been meant: they cost time in proportion to the names in the
// query, and show a schema that may be hidden. (gqlgen itself replaces two more.)
func quietRules() *rules.Rules {
	set := rules.NewDefaultRules()
	set.RemoveRule(rules.KnownArgumentNamesRule.Name)
	set.RemoveRule(rules.KnownTypeNamesRule.Name)
	set.RemoveRule(rules.ValuesOfCorrectTypeRule.Name)
	for _, rule := range []core.Rule{
		rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		set.AddRule(rule.Name, rule.RuleFunc)
	}
	return set
}

// persistedQueries lets clients send a query's hash instead of its text, once
// the server has seen the text.
type persistedQueries struct {
	extension.AutomaticPersistedQuery
}

func newPersistedQueries() persistedQueries {
	return persistedQueries{extension.AutomaticPersistedQuery{
		Cache: textCache{newCache(persistedEntries, persistedBytes, func(hash, text string) int { return len(hash) + len(text) })},
	}}
}

// MutateOperationParameters says of every error which kind it is; gqlgen does so
// only for a hash that is not known.
func (p persistedQueries) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	err := p.AutomaticPersistedQuery.MutateOperationParameters(ctx, params)
	if err != nil && err.Extensions["code"] == nil {
		return gqlerror.Wrap(apierr.BadInput("%s", err.Message))
	}
	return err
}

// textCache does not keep long texts: whoever sends one once can send it again.
type textCache struct{ *cache[string] }

func (c textCache) Add(ctx context.Context, hash, text string) {
	if len(text) <= maxPersistedLength {
		c.cache.Add(ctx, hash, text)
	}
}
