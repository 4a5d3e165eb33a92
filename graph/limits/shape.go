package limits

import "github.com/vektah/gqlparser/v2/ast"

// shape walks a document that has been parsed but not validated: fragments may
// be missing, doubled, unused or cyclic.
type shape struct {
	doc       *ast.QueryDocument
	limits    Limits
	fragments map[string]*ast.FragmentDefinition
	extents   map[string]*extent // by fragment; nil while it is being measured
}

// extent is how far a selection set reaches when its fragments are written out.
type extent struct {
	fields        uint64
	depth         int
	introspection int // depth of the part below `__schema` and `__type`
}

func newShape(doc *ast.QueryDocument, limits Limits) *shape {
	s := &shape{
		doc:       doc,
		limits:    limits,
		fragments: make(map[string]*ast.FragmentDefinition, len(doc.Fragments)),
		extents:   make(map[string]*extent, len(doc.Fragments)),
	}
	for _, f := range doc.Fragments {
		if _, ok := s.fragments[f.Name]; !ok {
			s.fragments[f.Name] = f
		}
	}
	return s
}

// check makes the cheap checks first: each bounds the work of the next.
func (s *shape) check() error {
	for _, step := range []func() error{s.checkDirectives, s.checkExtent, s.checkVisits, s.checkOverlaps} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// checkExtent measures everything that the roots reach.
func (s *shape) checkExtent() error {
	var total extent
	for _, root := range s.roots() {
		e, err := s.extentOf(root)
		if err != nil {
			return err
		}
		total.add(e)
	}
	switch l := s.limits; {
	case total.depth > l.Depth:
		return tooDeep(total.depth, l.Depth)
	case total.introspection > l.IntrospectionDepth:
		return tooDeep(total.introspection, l.IntrospectionDepth)
	case total.fields > uint64(l.Fields):
		return tooMany("fields when its fragments are written out", total.fields, l.Fields)
	}
	return nil
}

func (s *shape) extentOf(set ast.SelectionSet) (extent, error) {
	var total extent
	for _, selection := range set {
		e, err := s.extentOfSelection(selection)
		if err != nil {
			return extent{}, err
		}
		total.add(e)
	}
	return total, nil
}

func (s *shape) extentOfSelection(selection ast.Selection) (extent, error) {
	switch selection := selection.(type) {
	case *ast.Field:
		e, err := s.extentOf(selection.SelectionSet)
		return e.under(selection.Name), err
	case *ast.InlineFragment:
		return s.extentOf(selection.SelectionSet)
	case *ast.FragmentSpread:
		if f := s.fragments[selection.Name]; f != nil {
			return s.extentOfFragment(f, selection.Position)
		}
	}
	return extent{}, nil
}

// extentOfFragment measures a fragment once, however often it is spread. A cycle is refused here,
// in validation's own words: the checks that follow would never end on it.
func (s *shape) extentOfFragment(f *ast.FragmentDefinition, at *ast.Position) (extent, error) {
	if e, ok := s.extents[f.Name]; ok {
		if e == nil {
			return extent{}, positioned(at, "Cannot spread fragment %q within itself.", f.Name)
		}
		return *e, nil
	}
	s.extents[f.Name] = nil
	e, err := s.extentOf(f.SelectionSet)
	if err != nil {
		return extent{}, err
	}
	s.extents[f.Name] = &e
	return e, nil
}

// add adds the extent of a sibling.
func (e *extent) add(other extent) {
	e.fields = sum(e.fields, other.fields)
	e.depth = max(e.depth, other.depth)
	e.introspection = max(e.introspection, other.introspection)
}

// under is the extent of a field with this selection set.
func (e extent) under(field string) extent {
	e.fields = sum(e.fields, 1)
	if field == "__schema" || field == "__type" {
		return extent{fields: e.fields, depth: 1, introspection: e.depth + 1}
	}
	e.depth++
	return e
}

// roots are the operations, and the fragments that none of them reaches, including second fragments
// with the same name: validation refuses these, but goes through them first.
func (s *shape) roots() []ast.SelectionSet {
	var roots []ast.SelectionSet
	reached := make(map[string]bool, len(s.fragments))
	for _, op := range s.doc.Operations {
		roots = append(roots, op.SelectionSet)
		s.walk(op.SelectionSet, reached, func(ast.Selection) bool { return true })
	}
	for _, f := range s.doc.Fragments {
		if !reached[f.Name] || s.fragments[f.Name] != f {
			roots = append(roots, f.SelectionSet)
		}
	}
	return roots
}
