package selections

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
)

// template is a selection on a type, ready to be written.
type template struct {
	steps    []step
	mayFail  bool
	fixed    bool   // it follows from the document alone, for any variables
	typeName string // as clients know it
}

// step writes one field.
type step struct {
	key   []byte        // `"alias":`
	value *fields.Value // nil: __typename
	below *template     // of a field that is an object, or a list of them
}

// templateOf makes the template of a selection; nil if this package cannot write it.
func templateOf(ctx context.Context, t *fields.Type, sel ast.SelectionSet) *template {
	if !mayFit(t, sel) || isByGqlgen(ctx) {
		return nil
	}
	memo := For(ctx)
	if known, ok := memo.Get(t, sel); ok {
		return known.(*template)
	}
	op := graphql.GetOperationContext(ctx)
	p := compile(op, t, sel)
	if p != nil && (p.fixed || !memo.varies(op.Doc)) {
		memo.Put(t, sel, p)
	}
	return p
}

// mayFit reports whether this package may be able to write a selection, without the cost of
// collecting its fields.
func mayFit(t *fields.Type, sel ast.SelectionSet) bool {
	for _, s := range sel {
		if f, ok := s.(*ast.Field); ok && t.Value(f) == nil && f.Name != "__typename" {
			return false
		}
	}
	return true
}

func compile(op *graphql.OperationContext, t *fields.Type, sel ast.SelectionSet) *template {
	all, err := Collect(op, sel, t.Is)
	if err != nil {
		return nil
	}
	p := &template{typeName: PrefixOf(op).Type(t.Name), steps: make([]step, 0, len(all)), fixed: Simple(sel)}
	for _, f := range all {
		if !p.add(op, t, f.Field, f.Selections) {
			return nil
		}
	}
	return p
}

// add appends a field; false if its value is not at hand.
func (p *template) add(op *graphql.OperationContext, t *fields.Type, f *ast.Field, sel ast.SelectionSet) bool {
	s := step{value: t.Value(f)}
	if s.value == nil && f.Name != "__typename" {
		return false
	}
	s.key = append(fields.AppendString(s.key, f.Alias), ':')
	if s.value != nil {
		p.mayFail = p.mayFail || s.value.Fails != nil
		if s.value.Append == nil {
			below := fields.Named(f.Definition.Type.Name())
			if !mayFit(below, sel) {
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

// fails reports whether a selected value could not be loaded.
func (p *template) fails(v any) bool {
	if !p.mayFail {
		return false
	}
	for i := range p.steps {
		s := &p.steps[i]
		switch {
		case s.value == nil:
		case s.value.Fails != nil && s.value.Fails(v):
			return true
		case s.below != nil && s.below.mayFail && s.below.failsIn(s.value, v):
			return true
		}
	}
	return false
}

// failsIn is fails for the object, or the objects, that v has as a value.
func (p *template) failsIn(value *fields.Value, v any) bool {
	if value.Object != nil {
		one := value.Object(v)
		return one != nil && p.fails(one)
	}
	for i := range value.Len(v) {
		if one := value.At(v, i); one != nil && p.fails(one) {
			return true
		}
	}
	return false
}

// append writes an object, or a list of them. A list ends when the answer gets longer
// than most.
func (p *template) append(to []byte, v any, most int) []byte {
	if _, ok := v.(elements); ok {
		return p.appendList(to, listed, v, most)
	}
	return p.appendObject(to, v, most)
}

// listed are elements as a list that they have.
var listed = &fields.Value{
	Len: func(v any) int { return len(v.(elements)) },
	At:  func(v any, i int) any { return v.(elements)[i] },
}

func (p *template) appendObject(to []byte, v any, most int) []byte {
	if v == nil {
		return append(to, "null"...)
	}
	to = append(to, '{')
	for i := range p.steps {
		if i > 0 {
			to = append(to, ',')
		}
		to = p.appendValue(to, &p.steps[i], v, most)
	}
	return append(to, '}')
}

// appendValue writes one field.
func (p *template) appendValue(to []byte, s *step, v any, most int) []byte {
	to = append(to, s.key...)
	switch {
	case s.value == nil:
		return fields.AppendString(to, p.typeName)
	case s.value.Append != nil:
		return s.value.Append(to, v)
	case s.value.Object != nil:
		return s.below.appendObject(to, s.value.Object(v), most)
	}
	return s.below.appendList(to, s.value, v, most)
}

// appendList writes a list that v has as a value.
func (p *template) appendList(to []byte, value *fields.Value, v any, most int) []byte {
	n := value.Len(v)
	if n < 0 {
		return append(to, "null"...)
	}
	to = append(to, '[')
	for i := 0; i < n && len(to) <= most; i++ {
		if i > 0 {
			to = append(to, ',')
		}
		to = p.appendObject(to, value.At(v, i), most)
	}
	return append(to, ']')
}

// mixed is a selection on an object of which gqlgen has to answer some fields, and no others.
type mixed struct {
	values *template        // of the other fields
	order  []int            // for each field, which one it is of the values; negative: of slow, from −1 on
	slow   ast.SelectionSet // for gqlgen
	keys   [][]byte         // of the fields of slow
}

type mixedKey struct{ *fields.Type }

// mixedOf separates a selection; nil if there is nothing to separate, if that does not follow from the document alone, or if it cannot be
// kept: gqlgen remembers for the request what it has collected of the part that it answers, by where that is in memory.
func mixedOf(ctx context.Context, t *fields.Type, sel ast.SelectionSet) *mixed {
	memo := For(ctx)
	if known, ok := memo.Get(mixedKey{t}, sel); ok {
		return known.(*mixed)
	}
	op := graphql.GetOperationContext(ctx)
	if isByGqlgen(ctx) || memo.varies(op.Doc) {
		return nil
	}
	m, _ := memo.Put(mixedKey{t}, sel, separate(op, t, sel)).(*mixed)
	return m
}

func separate(op *graphql.OperationContext, t *fields.Type, sel ast.SelectionSet) *mixed {
	all, err := Collect(op, sel, t.Is)
	if err != nil {
		return nil
	}
	m := &mixed{values: &template{typeName: PrefixOf(op).Type(t.Name)}}
	for _, f := range all {
		if m.values.add(op, t, f.Field, f.Selections) {
			m.order = append(m.order, len(m.values.steps)-1)
			continue
		}
		if len(f.Selections) != len(f.Field.SelectionSet) { // several fields of the document are one in the answer
			return nil
		}
		m.slow = append(m.slow, f.Field)
		m.order = append(m.order, -len(m.slow))
		m.keys = append(m.keys, append(fields.AppendString(nil, f.Alias), ':'))
	}
	if len(m.values.steps) == 0 || len(m.slow) == 0 {
		return nil
	}
	return m
}

// answer joins both. If gqlgen has made no object of its fields, there is none.
func (m *mixed) answer(v any, slow graphql.Marshaler) graphql.Marshaler {
	set, is := slow.(*graphql.FieldSet)
	if !is {
		return slow
	}
	return mixture{m, v, set}
}

// mixture is an object whose fields both have answered.
type mixture struct {
	*mixed
	v    any
	slow *graphql.FieldSet
}

// MarshalGQL implements [graphql.Marshaler].
func (m mixture) MarshalGQL(w io.Writer) {
	text, ok := w.(*answer)
	if !ok {
		text = &answer{most: noLimit}
		defer func() { w.Write(text.bytes) }()
	}
	for i, k := range m.order {
		text.bytes = append(text.bytes, "{,"[min(i, 1)])
		if k >= 0 {
			text.bytes = m.values.appendValue(text.bytes, &m.values.steps[k], m.v, text.most)
			continue
		}
		text.bytes = append(text.bytes, m.keys[-k-1]...)
		m.slow.Values[-k-1].MarshalGQL(text)
	}
	text.bytes = append(text.bytes, '}')
}
