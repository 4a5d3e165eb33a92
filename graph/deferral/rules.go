package deferral

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// AddRules adds the rules of validation for @defer, which are those of graphql-js 17: labels are texts and unique; a
// deferred fragment must not be on the root type of mutations or subscriptions nor, unless a variable says otherwise,
// within a subscription.
func AddRules(to *rules.Rules) {
	to.AddRule("DeferDirectiveLabel", labels)
	to.AddRule("DeferDirectiveOnRootField", rootFields)
}

func labels(observers *core.Events, addError core.AddErrFunc) {
	known := make(map[string]*ast.Directive)
	observers.OnDirective(func(_ *core.Walker, d *ast.Directive) {
		argument := d.Arguments.ForName("label")
		if d.Name != "defer" || argument == nil || argument.Value.Kind == ast.NullValue {
			return
		}
		label := argument.Value
		if label.Kind != ast.StringValue && label.Kind != ast.BlockValue {
			addError(core.Message(`Argument "@defer(label:)" must be a static string.`), core.At(d.Position))
			return
		}
		switch other := known[label.Raw]; other {
		case nil:
			known[label.Raw] = d
		case d: // the fragment that contains it is spread more than once
		default:
			addError(core.Message(`Value for argument "@defer(label:)" must be unique: two are the same.`), core.At(d.Position))
		}
	})
}

func rootFields(observers *core.Events, addError core.AddErrFunc) {
	observers.OnOperation(func(_ *core.Walker, op *ast.OperationDefinition) {
		if op.Operation != ast.Mutation && op.Operation != ast.Subscription {
			return
		}
		w := walk{operation: op.Operation, seen: make(map[*ast.FragmentDefinition]bool), refuse: func(d *ast.Directive, format string, args ...any) {
			addError(core.Message(format, args...), core.At(d.Position))
		}}
		w.set(op.SelectionSet, true)
	})
}

// walk looks at the fragments of one operation.
type walk struct {
	operation ast.Operation
	seen      map[*ast.FragmentDefinition]bool
	refuse    func(d *ast.Directive, format string, args ...any)
}

func (w walk) set(set ast.SelectionSet, root bool) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			w.set(s.SelectionSet, false)
		case *ast.InlineFragment:
			w.directive(s.Directives.ForName("defer"), root)
			w.set(s.SelectionSet, root)
		case *ast.FragmentSpread:
			w.directive(s.Directives.ForName("defer"), root)
			if s.Definition != nil && !w.seen[s.Definition] {
				w.seen[s.Definition] = true
				w.set(s.Definition.SelectionSet, root)
			}
		}
	}
}

func (w walk) directive(d *ast.Directive, root bool) {
	if d == nil {
		return
	}
	argument := d.Arguments.ForName("if")
	switch {
	case root:
		w.refuse(d, "Defer directive cannot be used on the root type of a %s.", w.operation)
	case w.operation == ast.Subscription && (argument == nil || argument.Value.Kind != ast.Variable && argument.Value.Raw != "false"):
		w.refuse(d, `Defer directive not supported on subscription operations. Disable "@defer" by setting the "if" argument to "false".`)
	}
}
