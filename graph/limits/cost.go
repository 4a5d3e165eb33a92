package limits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/graph/selections"
)

// The cost of an operation is computed as follows:
//
//	cost(field) = weight + arguments + length × (1 + cost of what is selected in each element)
//
// The weight of a field is 1, also for plain values, unless its [kith/graph/fields.Field] says more
// because it takes more work. A field that is not a list has the length 1, without the
// extra 1 for its element. So the cost is roughly the number of values that the
// answer may hold, plus the work of finding them.
//
// The length of a list is taken from the field (see rules.go). On a connection it
// applies only to the fields below `edges` and `nodes`.
//
// The arguments cost 1 for every [bytesAUnit] bytes of a text, and 1 for each element of a list
// and each field of an input object, unless the list sets the length (see inputs.go).
//
// Sums and products saturate. The cost of a fragment is computed once, however often it is
// spread, so the work is linear in the size of the document.

// Costs are what the operations of a schema cost, and may cost.
type Costs struct {
	limits Limits
	rules  rules
	charge func(*graphql.OperationContext) (uint64, error)
}

// New reads the costs from a schema. It fails if a field returns a list of unknown length, or takes texts without a bound. The result
// of charge is added to the cost of each operation, and its error refuses the operation; nil adds nothing.
func New(schema *ast.Schema, limits Limits, charge func(*graphql.OperationContext) (cost uint64, err error)) (*Costs, error) {
	rules, err := rulesOf(schema)
	if err != nil {
		return nil, fmt.Errorf("costs of the schema: %w", err)
	}
	return &Costs{limits: limits.withDefaults(), rules: rules, charge: charge}, nil
}

// Of is the cost of an operation with its variables. The error, an [apierr.Error], says why the
// operation is refused.
func (c *Costs) Of(op *graphql.OperationContext) (uint64, error) {
	cost, err := c.rules.costOf(op.Operation, op.Variables)
	if err == nil && c.charge != nil {
		var more uint64
		more, err = c.charge(op)
		cost = sum(cost, more)
	}
	if err != nil {
		return 0, err
	}
	limit, what := uint64(max(0, c.limits.Cost)), "request"
	if op.Operation.Operation == ast.Subscription {
		cost = sum(cost, uint64(len(op.RawQuery)/textPerCost))
		limit, what = min(limit, uint64(max(0, c.limits.SubscriptionCost))), "subscription"
	}
	if cost > limit {
		return 0, apierr.CostTooHigh.Error("the query costs %d and one %s may cost at most %d: ask for fewer fields or shorter lists", cost, what, limit).Over(cost, limit)
	}
	if cost > statFrom {
		op.Stats.SetExtension(statCost, cost)
	}
	return cost, nil
}

// statCost names the cost among an operation's statistics, where it is kept if it is more than statFrom: cheap ones shall not allocate for it.
const (
	statCost = "cost"
	statFrom = 1_000
)

// CostOf is the cost of an operation that may be executed; 0 if it is low.
func CostOf(op *graphql.OperationContext) uint64 {
	cost, _ := op.Stats.GetExtension(statCost).(uint64)
	return cost
}

// Queued is the part of an operation's cost that is for work with a queue of its own, such as hashing passwords, as far as the
// operation asks for it outside of fragments.
func (c *Costs) Queued(op *graphql.OperationContext) (cost uint64) {
	w := costWalk{rules: c.rules, vars: op.Variables}
	for _, selection := range op.Operation.SelectionSet {
		field, ok := selection.(*ast.Field)
		if list, _ := selections.Parts(selection); ok && w.included(list) && c.rules[field.Definition].queued {
			cost = sum(cost, c.rules[field.Definition].weight)
		}
	}
	return cost
}

// textPerCost is how many bytes of its text add 1 to the cost of a subscription: the text,
// and a document of up to 77 times its size, are held while it runs.
const textPerCost = 16

// amount is the cost of a selection set in two parts, because a fragment of a
// connection is costed before it is known how long the page is.
type amount struct {
	once    uint64 // counts once
	perItem uint64 // counts for each item of the page: what `edges` and `nodes` hold
}

func (a amount) plus(b amount) amount {
	return amount{sum(a.once, b.once), sum(a.perItem, b.perItem)}
}

// costOf computes the cost of a validated operation. The error is BAD_USER_INPUT, if a text is too long
// for its argument.
func (r rules) costOf(op *ast.OperationDefinition, vars map[string]any) (uint64, error) {
	w := costWalk{rules: r, vars: vars}
	total := w.set(op.SelectionSet)
	if w.tooLong != nil {
		return 0, apierr.All(w.tooLong...)
	}
	return sum(total.once, total.perItem), nil
}

type costWalk struct {
	rules     rules
	vars      map[string]any
	fragments map[*ast.FragmentDefinition]amount
	variables map[variableUse]uint64
	tooLong   []error // of arguments, one of each name
}

func (w *costWalk) set(set ast.SelectionSet) amount {
	var total amount
	for _, selection := range set {
		if list, _ := selections.Parts(selection); !w.included(list) {
			continue
		}
		switch selection := selection.(type) {
		case *ast.Field:
			total = total.plus(w.field(selection))
		case *ast.InlineFragment:
			total = total.plus(w.set(selection.SelectionSet))
		case *ast.FragmentSpread:
			total = total.plus(w.fragment(selection.Definition))
		}
	}
	return total
}

func (w *costWalk) fragment(f *ast.FragmentDefinition) amount {
	if a, ok := w.fragments[f]; ok {
		return a
	}
	if w.fragments == nil {
		w.fragments = make(map[*ast.FragmentDefinition]amount)
	}
	a := w.set(f.SelectionSet)
	w.fragments[f] = a
	return a
}

func (w *costWalk) field(field *ast.Field) amount {
	below := w.set(field.SelectionSet)
	rule, ok := w.rules[field.Definition]
	if !ok { // __typename
		return amount{once: sum(1, w.given(field, nil))}
	}
	weight := rule.weight
	if len(rule.inputs) > 0 || len(field.Alias) >= bytesAUnit {
		weight = sum(weight, w.given(field, rule.inputs))
	}
	if rule.chosen > 0 && slices.ContainsFunc(fields.ChosenBy, func(name string) bool { return w.isGiven(field, name) }) {
		weight = sum(weight, rule.chosen)
	}
	switch rule.kind {
	case item:
		return amount{perItem: sum(weight, below.once)}
	case info:
		return amount{once: sum(weight, below.once), perItem: 1}
	case page:
		n := rule.length(field, w.vars)
		return amount{once: sum(weight, below.once, product(n, below.perItem))}
	case list:
		n := rule.length(field, w.vars)
		return amount{once: sum(weight, product(n, sum(1, below.once)))}
	default:
		return amount{once: sum(weight, below.once)}
	}
}

// isGiven reports whether an argument is given, or a field of it, such as `only.list`: neither as null, as an object of nulls, nor as the default.
func (w *costWalk) isGiven(field *ast.Field, name string) bool {
	name, inside, _ := strings.Cut(name, ".")
	if field.Arguments.ForName(name) == nil {
		return false
	}
	switch value := selections.Argument(field, name, w.vars).(type) {
	case nil:
		return false
	case map[string]any:
		for of, one := range value {
			if one != nil && (inside == "" || of == inside) {
				return true
			}
		}
		return false
	default:
		usual, _ := field.Definition.Arguments.ForName(name).DefaultValue.Value(nil)
		return value != usual
	}
}

// included applies @skip and @include.
func (w *costWalk) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		arg := d.Arguments.ForName("if")
		if arg == nil {
			continue
		}
		value, err := arg.Value.Value(w.vars)
		if on, ok := value.(bool); err == nil && ok && on == (d.Name == "skip") {
			return false
		}
	}
	return true
}

// limitless is where sums and products saturate: the greatest integer that every
// JSON reader reads exactly.
const limitless = 1<<53 - 1

func sum(terms ...uint64) uint64 {
	var total uint64
	for _, t := range terms {
		total = min(total+min(t, limitless), limitless)
	}
	return total
}

func product(a, b uint64) uint64 {
	if a != 0 && b > limitless/a {
		return limitless
	}
	return a * b
}

// The bounds of `first` and `last`. The field's resolver refuses values
// outside; until then they count as the greatest allowed.
const (
	DefaultPage = 20
	MaxPage     = 100 // rows
)

// Bounds on the lists of ids that one field takes. The field's resolver refuses more.
const (
	MaxIDs   = 500
	MaxPairs = 2000
	MaxAmong = 2000 // users of `edgesAmong`

	MaxEntities = 2000 // different ones of `_entities`: some routers repeat them
)

// pageLength is what `first` or `last` asks for, the greater one if both are given.
func pageLength(field *ast.Field, vars map[string]any) uint64 {
	first, hasFirst := pageArgument(field, "first", vars)
	last, hasLast := pageArgument(field, "last", vars)
	if !hasFirst && !hasLast {
		return DefaultPage
	}
	return max(first, last)
}

func pageArgument(field *ast.Field, name string, vars map[string]any) (uint64, bool) {
	value := selections.Argument(field, name, vars)
	if value == nil {
		return 0, false
	}
	n, ok := value.(int64)
	if !ok || n < 0 || n > MaxPage {
		return MaxPage, true
	}
	return uint64(n), true
}

// lengthOfArguments multiplies the lengths of several list arguments.
func lengthOfArguments(names []string) func(*ast.Field, map[string]any) uint64 {
	return func(field *ast.Field, vars map[string]any) uint64 {
		length := uint64(1)
		for _, name := range names {
			length = product(length, listLength(field, name, vars))
		}
		return length
	}
}

// listLength does not build the list if the query text holds it.
func listLength(field *ast.Field, name string, vars map[string]any) uint64 {
	if arg := field.Arguments.ForName(name); arg != nil {
		value := arg.Value
		if value.Kind == ast.ObjectValue && len(value.Children) == 1 {
			value = value.Children[0].Value
		}
		if value.Kind == ast.ListValue {
			return uint64(len(value.Children))
		}
	}
	switch value := selections.Argument(field, name, vars).(type) {
	case []any:
		return uint64(len(value))
	case map[string]any: // it has one field
		for _, list := range value {
			list, _ := list.([]any)
			return uint64(len(list))
		}
	}
	return 0
}
