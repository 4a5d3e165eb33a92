package deferral

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// group is fields with the same response name, which an answer merges.
type group struct {
	name   string
	fields []*ast.Field
}

func (g group) first() *ast.Field { return g.fields[0] }

// below is the selections below the fields.
func (g group) below() []ast.SelectionSet {
	sets := make([]ast.SelectionSet, len(g.fields))
	for i, f := range g.fields {
		sets[i] = f.SelectionSet
	}
	return sets
}

// fragment is a deferred fragment.
type fragment struct {
	label string
	set   ast.SelectionSet
}

// collected is what is selected on objects of one type: what is not deferred, in the order of the document, and
// the deferred fragments.
type collected struct {
	on     *ast.Definition
	groups []group
	later  []fragment

	at   map[string]int // where a group is, by its name
	seen map[*ast.FragmentDefinition]bool
}

// collect collects the fields of selections on an object, as an executor does.
func (s *splitter) collect(on *ast.Definition, sets ...ast.SelectionSet) *collected {
	c := &collected{on: on, at: make(map[string]int), seen: make(map[*ast.FragmentDefinition]bool)}
	for _, set := range sets {
		s.add(c, set)
	}
	return c
}

func (s *splitter) add(c *collected, set ast.SelectionSet) {
	for _, selection := range set {
		condition, below, directives := partsOf(selection)
		if !s.included(directives) {
			continue
		}
		if f, ok := selection.(*ast.Field); ok {
			c.add(f)
			continue
		}
		if !s.fits(condition, c.on) {
			continue
		}
		if label, ok := s.defers(selection); ok {
			c.later = append(c.later, fragment{label, below})
			continue
		}
		if spread, ok := selection.(*ast.FragmentSpread); ok {
			if c.seen[spread.Definition] {
				continue
			}
			c.seen[spread.Definition] = true
		}
		s.add(c, below)
	}
}

func (c *collected) add(f *ast.Field) {
	if i, ok := c.at[f.Alias]; ok {
		c.groups[i].fields = append(c.groups[i].fields, f)
		return
	}
	c.at[f.Alias] = len(c.groups)
	c.groups = append(c.groups, group{f.Alias, []*ast.Field{f}})
}

// fold has a deferred fragment answered together with what surrounds it.
func (s *splitter) fold(c *collected, i int) {
	f := c.later[i]
	c.later = slices.Delete(c.later, i, i+1)
	s.add(c, f.set)
}

func partsOf(selection ast.Selection) (condition string, below ast.SelectionSet, directives ast.DirectiveList) {
	switch selection := selection.(type) {
	case *ast.Field:
		return "", selection.SelectionSet, selection.Directives
	case *ast.InlineFragment:
		return selection.TypeCondition, selection.SelectionSet, selection.Directives
	case *ast.FragmentSpread:
		return selection.Definition.TypeCondition, selection.Definition.SelectionSet, selection.Directives
	}
	return "", nil, nil
}

// included applies @skip and @include.
func (s *splitter) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		switch d.Name {
		case "skip":
			if s.isOn(d, false) {
				return false
			}
		case "include":
			if !s.isOn(d, true) {
				return false
			}
		}
	}
	return true
}

// isOn is the argument `if` of a directive.
func (s *splitter) isOn(d *ast.Directive, unless bool) bool {
	argument := d.Arguments.ForName("if")
	if argument == nil {
		return unless
	}
	value, err := argument.Value.Value(s.vars)
	if on, ok := value.(bool); err == nil && ok {
		return on
	}
	return unless
}

// defers reports whether a fragment is deferred, and its label.
func (s *splitter) defers(selection ast.Selection) (label string, ok bool) {
	d := s.deferred[selection]
	if d == nil || !s.isOn(d, true) {
		return "", false
	}
	if argument := d.Arguments.ForName("label"); argument != nil && argument.Value.Kind != ast.NullValue {
		label = argument.Value.Raw
	}
	return label, true
}

// fits reports whether a fragment with a condition applies to objects of a type.
func (s *splitter) fits(condition string, on *ast.Definition) bool {
	return condition == "" || condition == on.Name || slices.Contains(s.schema.PossibleTypes[condition], on)
}

// possible is the types that the objects of a field may have.
func (s *splitter) possible(f *ast.Field) []*ast.Definition {
	d := s.schema.Types[f.Definition.Type.Name()]
	if d.Kind == ast.Object {
		return []*ast.Definition{d}
	}
	return s.schema.PossibleTypes[d.Name]
}

func isList(f *ast.Field) bool { return f.Definition.Type.Elem != nil }

// reaches reports whether a selection has a fragment that carries @defer.
func (s *splitter) reaches(set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(selection ast.Selection) bool {
		_, below, _ := partsOf(selection)
		spread, ok := selection.(*ast.FragmentSpread)
		switch {
		case s.deferred[selection] != nil:
			return true
		case !ok:
			return s.reaches(below)
		}
		known, ok := s.reached[spread.Definition]
		if !ok {
			known = s.reaches(below)
			s.reached[spread.Definition] = known
		}
		return known
	})
}

// had is the fields of an object that are answered before, by response name.
type had map[string][]*ast.Field

// and adds the groups of a collection.
func (h had) and(c *collected) had {
	all := make(had, len(h)+len(c.groups))
	for name, fields := range h {
		all[name] = fields
	}
	for _, g := range c.groups {
		all[g.name] = append(slices.Clip(all[g.name]), g.fields...)
	}
	return all
}

// below is the fields that are answered before, of a field's objects of a type.
func (s *splitter) below(fields []*ast.Field, on *ast.Definition) had {
	return had(nil).and(s.collect(on, group{fields: fields}.below()...))
}

// listsMore reports whether fields select more of a list than was answered before.
func (s *splitter) listsMore(c *collected, before had) bool {
	return slices.ContainsFunc(c.groups, func(g group) bool {
		earlier := before[g.name]
		if earlier == nil || len(g.first().SelectionSet) == 0 {
			return false
		}
		if isList(g.first()) {
			return !s.covered(g.below(), group{fields: earlier}.below())
		}
		return slices.ContainsFunc(s.possible(g.first()), func(on *ast.Definition) bool {
			return s.listsMore(s.collect(on, g.below()...), s.below(earlier, on))
		})
	})
}

// covered reports whether selections are part of others, whatever the types of the objects are.
func (s *splitter) covered(some, by []ast.SelectionSet) bool {
	all := make(had)
	for _, set := range by {
		s.flatten(set, false, all)
	}
	wanted := make(had)
	for _, set := range some {
		s.flatten(set, true, wanted)
	}
	for name, fields := range wanted {
		if all[name] == nil || !s.covered(group{fields: fields}.below(), group{fields: all[name]}.below()) {
			return false
		}
	}
	return true
}

// flatten gathers fields: all, or only those that are selected whatever the type of the object is. Below a list
// nothing is deferred.
func (s *splitter) flatten(set ast.SelectionSet, conditional bool, into had) {
	for _, selection := range set {
		condition, below, directives := partsOf(selection)
		if !s.included(directives) {
			continue
		}
		if f, ok := selection.(*ast.Field); ok {
			into[f.Alias] = append(into[f.Alias], f)
		} else if conditional || condition == "" {
			s.flatten(below, conditional, into)
		}
	}
}
