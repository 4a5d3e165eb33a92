package deferral

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// splitter splits one operation.
type splitter struct {
	*Fragments
	schema *ast.Schema
	vars   map[string]any

	split   *Split
	count   int // fragments that are deferred, or are going to be
	places  int // places that are marked
	reached map[*ast.FragmentDefinition]bool
}

func (f *Fragments) split(schema *ast.Schema, op *ast.OperationDefinition, vars map[string]any) *Split {
	s := &splitter{
		Fragments: f, schema: schema, vars: vars,
		split: &Split{}, reached: make(map[*ast.FragmentDefinition]bool),
	}
	root := &place{on: schema.Query}
	set := s.object(root, s.collect(schema.Query, op.SelectionSet), nil)
	s.split.Parts = kept(s.split.Parts)
	if len(s.split.Parts) == 0 {
		return nil
	}
	s.split.First = operation(op, root, set)
	for _, p := range s.split.Parts {
		for i, of := range p.Operations {
			p.Operations[i] = operation(op, of.place, of.place.chain(of.SelectionSet))
		}
	}
	return s.split
}

// operation is an operation with other selections.
func operation(op *ast.OperationDefinition, at *place, set ast.SelectionSet) *Operation {
	other := *op
	other.SelectionSet = set
	return &Operation{OperationDefinition: &other, Path: at.path(), place: at}
}

// kept are the parts that answer something. A part within one that answers nothing moves to the part
// around that.
func kept(parts []*Part) []*Part {
	return slices.DeleteFunc(parts, func(p *Part) bool {
		for p.Within != nil && len(p.Within.Operations) == 0 {
			p.Within = p.Within.Within
		}
		return len(p.Operations) == 0
	})
}

// object is what is answered of an object within a part; nil stands for what is answered at once.
// Fragments that are deferred there become parts.
func (s *splitter) object(at *place, c *collected, within *Part) ast.SelectionSet {
	s.settle(c, nil)
	for _, f := range c.later {
		s.later(at, f, within, had(nil).and(c))
	}
	var set ast.SelectionSet
	for _, g := range c.groups {
		set = append(set, s.field(at, g, within)...)
	}
	if len(set) == 0 && at.parent != nil {
		s.mark(at) // all its fields are deferred or skipped, but a selection has to have some
	}
	if at.marker != "" {
		set = append(ast.SelectionSet{at.markerField()}, set...)
	}
	return set
}

// settle has some fragments answered together with what surrounds them: those that are too many, and those that
// select more of a list. After that, another fragment may select more of a list that such a fragment selects.
func (s *splitter) settle(c *collected, before had) {
	for folded := 0; len(c.later) > 0; folded++ {
		if folded < Most && s.count+len(c.later) <= Most {
			earlier := before.and(c)
			i := slices.IndexFunc(c.later, func(f fragment) bool {
				more := s.collect(c.on, f.set)
				lists := s.listsMore(more, earlier)
				earlier = earlier.and(more) // so that no two fragments select different parts of a list
				return lists
			})
			if i < 0 {
				break
			}
			s.fold(c, i)
		} else {
			s.fold(c, len(c.later)-1)
		}
	}
	s.count += len(c.later)
}

// later makes a part from a fragment on an object of which something is answered before.
func (s *splitter) later(at *place, f fragment, within *Part, before had) {
	p := &Part{Label: f.label, Path: at.path(), Within: within}
	s.split.Parts = append(s.split.Parts, p)
	s.part(p, at, s.collect(at.on, f.set), before)
}

// part adds to a part what it answers of an object, and of the objects below it of which something is answered
// before.
func (s *splitter) part(p *Part, at *place, c *collected, before had) {
	s.settle(c, before)
	var fresh []group
	for _, g := range c.groups {
		earlier := before[g.name]
		switch {
		case earlier == nil:
			fresh = append(fresh, g)
		case len(g.first().SelectionSet) > 0 && !isList(g.first()):
			for _, on := range s.possible(g.first()) {
				s.part(p, at.below(s, earlier[0], on), s.collect(on, g.below()...), s.below(earlier, on))
			}
		}
	}
	for _, f := range c.later {
		s.later(at, f, p, before.and(c))
	}
	if len(fresh) == 0 {
		return
	}
	s.mark(at)
	var set ast.SelectionSet
	for _, g := range fresh {
		set = append(set, s.field(at, g, p)...)
	}
	p.Operations = append(p.Operations, &Operation{OperationDefinition: &ast.OperationDefinition{SelectionSet: set}, place: at})
}

// field is a field of an object as it is written in the operation that answers it first: as in the
// document, unless something below it is deferred.
func (s *splitter) field(at *place, g group, within *Part) ast.SelectionSet {
	asItIs := func() (set ast.SelectionSet) {
		for _, f := range g.fields {
			set = append(set, f)
		}
		return set
	}
	if len(g.first().SelectionSet) == 0 || isList(g.first()) {
		return asItIs()
	}
	if !at.has(g.name) && !slices.ContainsFunc(g.fields, func(f *ast.Field) bool { return s.reaches(f.SelectionSet) }) {
		return asItIs()
	}
	field := plain(g.first())
	types := s.possible(g.first())
	for _, on := range types {
		set := s.object(at.below(s, g.first(), on), s.collect(on, g.below()...), within)
		if len(types) > 1 {
			set = ast.SelectionSet{&ast.InlineFragment{TypeCondition: on.Name, SelectionSet: set, ObjectDefinition: on, Position: field.Position}}
		}
		field.SelectionSet = append(field.SelectionSet, set...)
	}
	return ast.SelectionSet{field}
}

// plain is a field without its selections, and without its directives, which have been applied.
func plain(f *ast.Field) *ast.Field {
	other := *f
	other.Directives, other.SelectionSet = nil, nil
	return &other
}
