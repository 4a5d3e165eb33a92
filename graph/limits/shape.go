package limits

import (
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/graph/apierr"
)

// checkText parses a query text and checks its shape, knowing nothing of the
// schema. Returned errors are [apierr.Error] or, for syntax errors, the parser's.
func (l Limits) checkText(text string) error {
	if len(text) > l.TextBytes {
		return apierr.TooCostly(uint64(len(text)), uint64(l.TextBytes),
			"the query text has %d bytes and may have at most %d: pass values as variables", len(text), l.TextBytes)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, l.Tokens)
	if err != nil {
		// The parser has no error type of its own for this.
		if strings.Contains(err.Error(), "token limit") {
			return apierr.TooCostly(uint64(l.Tokens)+1, uint64(l.Tokens),
				"the query text has more than %d tokens: pass values as variables", l.Tokens)
		}
		errcode.Set(err, errcode.ParseFailed)
		return err
	}
	return newShape(doc, l).check()
}

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

// check takes the cheap measures first: each bounds the work of the next.
func (s *shape) check() error {
	for _, step := range []func() error{s.checkDirectives, s.checkExtent, s.checkVisits, s.checkOverlaps} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// checkDirectives counts the directives of selections and definitions, and
// refuses @defer, which the parser's prelude declares although no transport
// here can answer in parts.
func (s *shape) checkDirectives() error {
	count := 0
	add := func(list ast.DirectiveList) error {
		count += len(list)
		if count > s.limits.Directives {
			return tooMany("directives", uint64(count), s.limits.Directives)
		}
		if d := list.ForName("defer"); d != nil {
			return positioned(d.Position, "the directive @defer is not supported")
		}
		return nil
	}
	var walk func(ast.SelectionSet) error
	walk = func(set ast.SelectionSet) error {
		for _, selection := range set {
			list, below := directivesOf(selection)
			if err := add(list); err != nil {
				return err
			}
			if err := walk(below); err != nil {
				return err
			}
		}
		return nil
	}
	for _, d := range s.definitions() {
		if err := add(d.directives); err != nil {
			return err
		}
		if err := walk(d.set); err != nil {
			return err
		}
	}
	return nil
}

// checkExtent measures every operation and every fragment, used or not.
func (s *shape) checkExtent() error {
	var total extent
	for _, op := range s.doc.Operations {
		e, err := s.extentOf(op.SelectionSet)
		if err != nil {
			return err
		}
		total.add(e)
	}
	for _, f := range s.doc.Fragments {
		e, err := s.extentOfFragment(f, f.Position)
		if err != nil {
			return err
		}
		total.widen(e)
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

// extentOfFragment measures a fragment once, however often it is spread. A cycle
// is refused here, in validation's own words: the measures that follow would not
// end on it.
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

// add puts a sibling beside.
func (e *extent) add(other extent) {
	e.fields = sum(e.fields, other.fields)
	e.widen(other)
}

// widen takes the greater depths only.
func (e *extent) widen(other extent) {
	e.depth = max(e.depth, other.depth)
	e.introspection = max(e.introspection, other.introspection)
}

// under is the extent of a field with this selection set.
func (e extent) under(field string) extent {
	e.fields = sum(e.fields, 1)
	if isIntrospection(field) {
		return extent{fields: e.fields, depth: 1, introspection: e.depth + 1}
	}
	e.depth++
	return e
}

// checkVisits counts what validation's walk looks at: from every operation and
// every fragment all that can be reached, each fragment once.
func (s *shape) checkVisits() error {
	visits := 0
	seen := make(map[string]bool, len(s.fragments))
	var walk func(ast.SelectionSet) bool
	walk = func(set ast.SelectionSet) bool {
		visits += len(set)
		if visits > s.limits.Visits {
			return false
		}
		for _, selection := range set {
			_, below := directivesOf(selection)
			if spread, ok := selection.(*ast.FragmentSpread); ok && !seen[spread.Name] {
				seen[spread.Name] = true
				if f := s.fragments[spread.Name]; f != nil {
					below = f.SelectionSet
				}
			}
			if !walk(below) {
				return false
			}
		}
		return true
	}
	for _, d := range s.definitions() {
		clear(seen)
		if !walk(d.set) {
			return tooMany("selections to visit from all its operations and fragments", uint64(visits), s.limits.Visits)
		}
	}
	return nil
}

type definition struct {
	directives ast.DirectiveList
	set        ast.SelectionSet
}

func (s *shape) definitions() []definition {
	all := make([]definition, 0, len(s.doc.Operations)+len(s.doc.Fragments))
	for _, op := range s.doc.Operations {
		directives := slices.Clone(op.Directives)
		for _, v := range op.VariableDefinitions {
			directives = append(directives, v.Directives...)
		}
		all = append(all, definition{directives, op.SelectionSet})
	}
	for _, f := range s.doc.Fragments {
		all = append(all, definition{f.Directives, f.SelectionSet})
	}
	return all
}

func directivesOf(selection ast.Selection) (ast.DirectiveList, ast.SelectionSet) {
	switch selection := selection.(type) {
	case *ast.Field:
		return selection.Directives, selection.SelectionSet
	case *ast.InlineFragment:
		return selection.Directives, selection.SelectionSet
	case *ast.FragmentSpread:
		return selection.Directives, nil
	}
	return nil, nil
}

func isIntrospection(field string) bool { return field == "__schema" || field == "__type" }

func tooMany(what string, count uint64, limit int) error {
	return apierr.TooCostly(count, uint64(max(0, limit)), "the query has too many %s: at most %d are allowed", what, limit)
}

func tooDeep(depth, limit int) error {
	return apierr.TooCostly(uint64(depth), uint64(limit), "the query nests fields %d deep: at most %d levels are allowed", depth, limit)
}

// positioned is a mistake in the text at a place in it.
func positioned(at *ast.Position, format string, args ...any) error {
	err := gqlerror.ErrorPosf(at, format, args...)
	err.Err = apierr.BadInput(format, args...)
	return err
}
