package limits

import (
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// checkDirectives counts the directives of selections and definitions.
func (s *shape) checkDirectives() error {
	count := 0
	for _, op := range s.doc.Operations {
		count += len(op.Directives)
		for _, v := range op.VariableDefinitions {
			count += len(v.Directives)
		}
	}
	for _, f := range s.doc.Fragments {
		count += len(f.Directives)
	}
	for _, set := range s.sets() {
		s.walk(set, nil, func(one ast.Selection) bool {
			list, _ := selections.Parts(one)
			count += len(list)
			return true
		})
	}
	if count > s.limits.Directives {
		return tooMany("directives", uint64(count), s.limits.Directives)
	}
	return nil
}

// checkVisits counts the selections that validation visits: all that can be reached from every
// operation and every fragment, each fragment once.
func (s *shape) checkVisits() error {
	visits := 0
	for _, set := range s.sets() {
		more := s.walk(set, make(map[string]bool, len(s.fragments)), func(ast.Selection) bool {
			visits++
			return visits <= s.limits.Visits
		})
		if !more {
			return tooMany("selections to visit from all its operations and fragments", uint64(visits), s.limits.Visits)
		}
	}
	return nil
}

// sets are the selections of all operations and fragments.
func (s *shape) sets() []ast.SelectionSet {
	all := make([]ast.SelectionSet, 0, len(s.doc.Operations)+len(s.doc.Fragments))
	for _, op := range s.doc.Operations {
		all = append(all, op.SelectionSet)
	}
	for _, f := range s.doc.Fragments {
		all = append(all, f.SelectionSet)
	}
	return all
}

// walk visits all selections of a set, until visit returns false. It enters a fragment where it is spread first, unless
// seen has it; without seen it enters none.
func (s *shape) walk(set ast.SelectionSet, seen map[string]bool, visit func(ast.Selection) bool) (more bool) {
	for _, selection := range set {
		if !visit(selection) {
			return false
		}
		_, below := selections.Parts(selection)
		if spread, ok := selection.(*ast.FragmentSpread); ok && seen != nil && !seen[spread.Name] {
			seen[spread.Name] = true
			if f := s.fragments[spread.Name]; f != nil {
				below = f.SelectionSet
			}
		}
		if !s.walk(below, seen, visit) {
			return false
		}
	}
	return true
}
