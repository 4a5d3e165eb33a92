package limits

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// checkDirectives counts the directives of selections and definitions.
func (s *shape) checkDirectives() error {
	count := 0
	add := func(list ast.DirectiveList) error {
		count += len(list)
		if count > s.limits.Directives {
			return tooMany("directives", uint64(count), s.limits.Directives)
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

// checkVisits counts the selections that validation visits: all that can be reached from every
// operation and every fragment, each fragment once.
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

// definition is an operation or a fragment.
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
