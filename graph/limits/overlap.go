package limits

import "github.com/vektah/gqlparser/v2/ast"

// checkOverlaps counts the pairs that validation's rule OverlappingFieldsCanBeMerged
// has to compare. The rule compares fields of one response name, and fragments spread beside each
// other. It descends into the selections below fields of one name as if they were one selection
// set; so does this count. `{ a a a … }` with 20,000 fields is 40 seconds of such comparisons.
//
// The walk follows every path, which checkExtent has bounded before.
func (s *shape) checkOverlaps() error {
	o := overlaps{shape: s, limit: s.limits.Overlaps}
	for _, root := range s.roots() {
		o.merge([]ast.SelectionSet{root})
	}
	if o.pairs > o.limit {
		return tooMany("pairs of fields or fragments that may overlap", uint64(o.pairs), o.limit)
	}
	return nil
}

type overlaps struct {
	*shape
	limit int
	pairs int
}

// merge counts the pairs of sets that will be merged into one, and of everything
// below. It stops once there are too many.
func (o *overlaps) merge(sets []ast.SelectionSet) {
	m := mergedFields{shape: o.shape, byName: make(map[string]*sameName), seen: make(map[string]bool)}
	for _, set := range sets {
		m.collect(set, 1)
	}
	o.pairs += pairsOf(m.spreads) * m.rounds
	for _, same := range m.names {
		o.pairs += pairsOf(same.count) * m.rounds
	}
	for _, same := range m.names {
		if o.pairs > o.limit {
			return
		}
		if len(same.below) > 0 {
			o.merge(same.below)
		}
	}
}

// pairsOf cannot overflow: the number of tokens bounds n.
func pairsOf(n int) int { return n * (n - 1) / 2 }

// mergedFields is one selection set made of several, with the fragments spread in
// them. Names are kept in order, so that the count does not depend on chance.
type mergedFields struct {
	*shape
	byName  map[string]*sameName
	names   []*sameName
	seen    map[string]bool
	spreads int
	rounds  int // how often the rule compares the innermost selections
}

// sameName is the fields that will be one entry of the answer.
type sameName struct {
	count int
	below []ast.SelectionSet
}

// collect adds a set. The rule starts over at every inline fragment, so each one around a selection
// is one more round.
func (m *mergedFields) collect(set ast.SelectionSet, round int) {
	m.rounds = max(m.rounds, round)
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			m.addField(selection)
		case *ast.InlineFragment:
			m.collect(selection.SelectionSet, round+1)
		case *ast.FragmentSpread:
			m.spreads++
			if f := m.fragments[selection.Name]; f != nil && !m.seen[f.Name] {
				m.seen[f.Name] = true
				m.collect(f.SelectionSet, round)
			}
		}
	}
}

func (m *mergedFields) addField(field *ast.Field) {
	same := m.byName[field.Alias]
	if same == nil {
		same = &sameName{}
		m.byName[field.Alias] = same
		m.names = append(m.names, same)
	}
	same.count++
	if len(field.SelectionSet) > 0 {
		same.below = append(same.below, field.SelectionSet)
	}
}
