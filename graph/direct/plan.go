package direct

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// plan is a selection on a type, ready to be written.
type plan struct {
	steps    []step
	keys     []byte // of all steps
	mayFail  bool
	fixed    bool // it follows from the document alone, whatever the variables are
	typeName string
}

// step writes one field.
type step struct {
	key   []byte // `"alias":`, with a comma before it unless it is the first
	field *field // nil: __typename
	below *plan  // of a field that is an object, or a list of them
}

// planOf makes the plan of a selection; nil when it is not for this package.
func planOf(ctx context.Context, t *objectType, sel ast.SelectionSet) *plan {
	if t == nil || !t.mayFit(sel) || withouts.Load() && ctx.Value(withoutKey{}) != nil {
		return nil
	}
	memo := selections.For(ctx)
	if known, ok := memo.Get(t, sel); ok {
		return known.(*plan)
	}
	p := compile(graphql.GetOperationContext(ctx), t, sel)
	if p != nil && p.fixed {
		memo.Put(t, sel, p)
	}
	return p
}

// mayFit looks at a selection without the cost of collecting its fields.
func (t *objectType) mayFit(sel ast.SelectionSet) bool {
	for _, s := range sel {
		if f, ok := s.(*ast.Field); ok && t.fields[f.Name] == nil && f.Name != "__typename" {
			return false
		}
	}
	return true
}

func compile(op *graphql.OperationContext, t *objectType, sel ast.SelectionSet) *plan {
	p := &plan{typeName: t.name, steps: make([]step, 0, len(sel))}
	if selections.Simple(sel) {
		p.fixed = true
		p.keys = make([]byte, 0, lengthOfKeys(sel))
		for _, s := range sel {
			if f := s.(*ast.Field); !p.add(op, t, f, f.SelectionSet) {
				return nil
			}
		}
		return p
	}
	for _, f := range graphql.CollectFields(op, sel, t.satisfies) {
		if !p.add(op, t, f.Field, f.Selections) {
			return nil
		}
	}
	return p
}

// lengthOfKeys is how long the keys of a simple selection are together, so that there is
// room for them at once.
func lengthOfKeys(sel ast.SelectionSet) (n int) {
	for _, s := range sel {
		n += len(s.(*ast.Field).Alias) + len(`,"":`)
	}
	return n
}

// add appends a field; false when it is not in the type's table.
func (p *plan) add(op *graphql.OperationContext, t *objectType, f *ast.Field, sel ast.SelectionSet) bool {
	s := step{field: t.fields[f.Name]}
	if s.field == nil && f.Name != "__typename" {
		return false
	}
	start := len(p.keys)
	if len(p.steps) > 0 {
		p.keys = append(p.keys, ',')
	}
	p.keys = append(appendString(p.keys, f.Alias), ':')
	s.key = p.keys[start:len(p.keys):len(p.keys)]
	if s.field != nil {
		p.mayFail = p.mayFail || s.field.fails != nil
		if s.field.of != nil {
			below := s.field.of()
			if !below.mayFit(sel) {
				return false
			}
			if s.below = compile(op, below, sel); s.below == nil {
				return false
			}
			p.mayFail = p.mayFail || s.below.mayFail
			p.fixed = p.fixed && s.below.fixed
		}
	}
	p.steps = append(p.steps, s)
	return true
}

// fails tells whether a value that is selected could not be loaded.
func (p *plan) fails(v any) bool {
	if !p.mayFail {
		return false
	}
	for _, s := range p.steps {
		switch {
		case s.field == nil:
		case s.field.fails != nil && s.field.fails(v):
			return true
		case s.below != nil && s.below.mayFail:
			if s.field.anyBelow(v, s.below.fails) {
				return true
			}
		}
	}
	return false
}

// append writes an object, or a list of them. A list ends where it makes the answer longer
// than most.
func (p *plan) append(to []byte, v any, most int) []byte {
	if list, ok := v.(elements); ok {
		to = append(to, '[')
		for i, one := range list {
			if len(to) > most {
				break
			}
			if i > 0 {
				to = append(to, ',')
			}
			to = p.appendObject(to, one, most)
		}
		return append(to, ']')
	}
	return p.appendObject(to, v, most)
}

func (p *plan) appendObject(to []byte, v any, most int) []byte {
	if isNil(v) {
		return append(to, "null"...)
	}
	to = append(to, '{')
	for i := range p.steps {
		s := &p.steps[i]
		to = append(to, s.key...)
		switch {
		case s.field == nil:
			to = appendString(to, p.typeName)
		case s.below != nil:
			to = s.field.appendBelow(to, v, s.below, most)
		default:
			to = s.field.append(to, v)
		}
	}
	return append(to, '}')
}
