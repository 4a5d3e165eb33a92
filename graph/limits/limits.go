// Package limits refuses queries that cost too much, before they run.
//
// It works in two steps, both linear in the size of their input. The
// shape of a query text is checked before validation, because validation itself
// is quadratic in places (see [Limits] and shape.go). The cost of an operation
// is computed once its variables are known, because `first` decides how much a
// query asks for (see cost.go).
//
// gqlgen's own complexity limit is not used: it follows every path through the
// fragments, so 26 fragments that double keep it busy for nine seconds.
package limits

import (
	"context"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
)

// Limits bounds one query. A field left zero takes its default.
type Limits struct {
	// TextBytes is how long a query text may be; variables do not count.
	// Defaults to 65,536.
	TextBytes int

	// Tokens is how many tokens a query text may have. Defaults to 4,000: room
	// for the 500 ids of a `users` written into the text. The shape limits below make that many
	// safe.
	Tokens int

	// Depth is how deep fields may nest. Defaults to 15.
	Depth int

	// IntrospectionDepth is how deep they may nest below `__schema` and `__type`.
	// Defaults to 20: the official introspection query has 15 levels.
	IntrospectionDepth int

	// Fields is how many fields a query may have if every fragment is written
	// out at each spread, all operations together. Defaults to 5,000.
	Fields int

	// Visits is how many selections validation may look at: it enters every operation and every
	// fragment once, and from each one everything that it reaches. Defaults to 20,000.
	Visits int

	// Overlaps is how many pairs of fields or fragments validation may have to
	// compare to find out whether fields of one response name can be merged, at
	// 70 to 430 ns each. Defaults to 100,000.
	Overlaps int

	// Directives is how many directives a query text may have. Defaults to 200.
	Directives int

	// Cost is how much an operation may cost (see cost.go), roughly how many
	// values its answer may hold. Defaults to 100,000.
	Cost int

	// SubscriptionCost is how much a subscription may cost: it is answered again and again, for all
	// of its subscribers at once. Defaults to 1,000.
	SubscriptionCost int
}

const (
	// Values is how many values the variables of a request may hold, those in lists and objects
	// included; an object counts for ten. That is room for the 500 representations of an `_entities`.
	Values = 7_000

	// ValueDepth is how deep the variables may nest lists and objects: a filter of 8 levels has 16.
	ValueDepth = 32
)

// textPerCost is how many bytes of its text add 1 to the cost of a subscription: the text,
// and a document of up to 77 times its size, are held while it runs.
const textPerCost = 16

func (l Limits) withDefaults() Limits {
	for field, value := range map[*int]int{
		&l.TextBytes:          64 << 10,
		&l.Tokens:             4_000,
		&l.Depth:              15,
		&l.IntrospectionDepth: 20,
		&l.Fields:             5_000,
		&l.Visits:             20_000,
		&l.Overlaps:           100_000,
		&l.Directives:         200,
		&l.Cost:               100_000,
		&l.SubscriptionCost:   1_000,
	} {
		if *field == 0 {
			*field = value
		}
	}
	return l
}

// Extension applies [Limits] to a gqlgen server. Register it after any extension that
// fills in a query's text (persisted queries).
type Extension struct {
	limits Limits
	known  graphql.Cache[*ast.QueryDocument]
	costs  costs
	charge func(*graphql.OperationContext) (uint64, error)
}

var _ interface {
	graphql.HandlerExtension
	graphql.OperationParameterMutator
	graphql.OperationContextMutator
} = (*Extension)(nil)

// New makes the extension. known is the server's query cache: a text that is in the cache has
// passed the shape check and validation before and is not checked again.
func New(limits Limits, known graphql.Cache[*ast.QueryDocument]) *Extension {
	return &Extension{limits: limits.withDefaults(), known: known}
}

// Charge adds the result of a function to the cost of each operation; the function's error
// refuses the operation.
func (e *Extension) Charge(more func(*graphql.OperationContext) (cost uint64, err error)) {
	e.charge = more
}

// TextBytes is the limit that applies.
func (e *Extension) TextBytes() int { return e.limits.TextBytes }

// Tokens is the limit that applies, for the server's own parser.
func (e *Extension) Tokens() int { return e.limits.Tokens }

// ExtensionName names the extension in gqlgen's messages.
func (e *Extension) ExtensionName() string { return "Limits" }

// Validate reads the costs from the schema. It fails if a field returns a list
// of unknown length.
func (e *Extension) Validate(schema graphql.ExecutableSchema) error {
	if e.known == nil {
		return errors.New("limits need the server's query cache")
	}
	costs, err := costsOf(schema.Schema())
	if err != nil {
		return fmt.Errorf("costs of the schema: %w", err)
	}
	e.costs = costs
	return nil
}

// MutateOperationParameters checks the variables, and the shape of a query text not seen
// before.
func (e *Extension) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := CheckVariables(params.Variables); err != nil {
		return gqlerror.Wrap(err)
	}
	if _, ok := e.known.Get(ctx, params.Query); ok {
		return nil
	}
	return gqlerror.WrapIfUnwrapped(e.limits.CheckText(params.Query))
}

// MutateOperationContext checks the cost of the operation with its variables.
func (e *Extension) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	if _, err := e.Cost(op); err != nil {
		return gqlerror.Wrap(err)
	}
	return nil
}

// Cost is the cost of an operation with its variables. The error, an [apierr.Error], says why the
// operation is refused.
func (e *Extension) Cost(op *graphql.OperationContext) (uint64, error) {
	cost, err := e.costs.of(op.Operation, op.Variables)
	if err == nil && e.charge != nil {
		var more uint64
		more, err = e.charge(op)
		cost = sum(cost, more)
	}
	if err != nil {
		return 0, err
	}
	limit, what := uint64(max(0, e.limits.Cost)), "request"
	if op.Operation.Operation == ast.Subscription {
		cost = sum(cost, uint64(len(op.RawQuery)/textPerCost))
		limit, what = min(limit, uint64(max(0, e.limits.SubscriptionCost))), "subscription"
		op.Stats.SetExtension(e.ExtensionName(), cost)
	}
	if cost > limit {
		return 0, apierr.TooCostly(cost, limit,
			"the query costs %d and one %s may cost at most %d: ask for fewer fields or shorter lists", cost, what, limit)
	}
	return cost, nil
}

// SubscriptionCost is the cost of a subscription that has passed [Extension]; 0 for one that has
// not, and for other operations.
func SubscriptionCost(op *graphql.OperationContext) uint64 {
	cost, _ := op.Stats.GetExtension((*Extension)(nil).ExtensionName()).(uint64)
	return cost
}
