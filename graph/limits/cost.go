package limits

import "github.com/vektah/gqlparser/v2/ast"

// How the cost of an operation comes about:
//
//	cost(field) = weight + length × (1 + cost of what is selected in each element)
//
// The weight of a field is 1, plain values included, unless [weights] says more
// because it takes more work. A field that is no list has the length 1 and no
// extra 1 for its element. So the cost is about the number of values that the
// answer may hold, with the work of finding them on top.
//
// The length of a list is read off the field (see rules.go). On a connection it
// applies to what lies below `edges` and `nodes` only.
//
// Sums and products saturate. A fragment is costed once, however often it is
// spread, so the work is linear in the size of the document.

// amount is the cost of a selection set in two parts, because a fragment of a
// connection is costed before it is known how long the page is.
type amount struct {
	once    uint64 // counts once
	perItem uint64 // counts for each item of the page: what `edges` and `nodes` hold
}

func (a amount) plus(b amount) amount {
	return amount{sum(a.once, b.once), sum(a.perItem, b.perItem)}
}

// of computes the cost of a validated operation.
func (c costs) of(op *ast.OperationDefinition, vars map[string]any) uint64 {
	w := costWalk{costs: c, vars: vars}
	total := w.set(op.SelectionSet)
	return sum(total.once, total.perItem)
}

type costWalk struct {
	costs
	vars      map[string]any
	fragments map[*ast.FragmentDefinition]amount
}

func (w *costWalk) set(set ast.SelectionSet) amount {
	var total amount
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			if w.included(selection.Directives) {
				total = total.plus(w.field(selection))
			}
		case *ast.InlineFragment:
			if w.included(selection.Directives) {
				total = total.plus(w.set(selection.SelectionSet))
			}
		case *ast.FragmentSpread:
			if w.included(selection.Directives) {
				total = total.plus(w.fragment(selection.Definition))
			}
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
		return amount{once: 1}
	}
	switch rule.kind {
	case item:
		return amount{perItem: sum(1, below.once)}
	case page:
		n := rule.length(field, w.vars)
		return amount{once: sum(rule.weight, below.once, product(n, below.perItem))}
	case list:
		n := rule.length(field, w.vars)
		return amount{once: sum(rule.weight, product(n, sum(1, below.once)))}
	default:
		return amount{once: sum(rule.weight, below.once)}
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

// limitless is where sums and products stop: the greatest integer that every
// JSON reader takes for what it is.
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
