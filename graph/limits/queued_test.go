package limits_test

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/generated"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/must"
)

// Hashing passwords has a queue of its own. Nothing else is taken off the cost by which requests take turns.
func TestQueuedWork(t *testing.T) {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	costs, err := limits.New(schema, limits.Limits{}, nil)
	must.OK(t, err)
	const login = `login(handle: "maya", password: "correct horse")`
	for query, want := range map[string]uint64{
		`mutation { ` + login + ` { token } }`:                                                  5000,
		`mutation { ` + login + ` { token } b: ` + login + ` { token } }`:                       10_000,
		`mutation { ` + login + ` @skip(if: true) { token } b: signOutEverywhere { changed } }`: 0,
		`mutation ($x: Boolean = false) { ` + login + ` @include(if: $x) { token } }`:           0,
		`mutation { ...F } fragment F on Mutation { ` + login + ` { token } }`:                  0,
		`{ viewer { user { id } } }`:                                                            0,
	} {
		document, errs := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
		must.That(t, errs == nil, "%v", errs)
		op := &graphql.OperationContext{Operation: document.Operations[0], Variables: map[string]any{"x": false}}
		check.Equal(t, query, costs.Queued(op), want)
		all, err := costs.Of(op)
		check.That(t, err == nil && all >= want, "%s costs %d: %v", query, all, err)
	}
}
