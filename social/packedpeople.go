package social

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// peoplePacked is People where all lists of the filter are in memory. It tells whether
// they are.
func (g *Graph) peoplePacked(ctx context.Context, f Filter, empty func(List) bool, from Mark, first int) (c Common, ok bool) {
	sets, ok := g.packedSets(ctx, f.Lists(), empty)
	if !ok {
		return Common{}, false
	}
	term := termOf(f, sets)
	return g.shownPage(from, first, func(after storage.UserID, first int, hide bool) ([]storage.UserID, int) {
		if !hide {
			return idset.Select(term, after, first)
		}
		return idset.Select(g.audience.shownOf(anyOne(sets).Directory(), term), after, first)
	})
}

// packedSets returns lists as sets, if all are in memory that do not count as empty, and
// there is one.
func (g *Graph) packedSets(ctx context.Context, lists []List, empty func(List) bool) (map[List]*idset.Set, bool) {
	if g.packed == nil {
		return nil, false
	}
	sets := make(map[List]*idset.Set, len(lists))
	for _, side := range [2]storage.Side{storage.Forward, storage.Inverse} {
		var owners []storage.UserID
		for _, l := range lists {
			if l.Side == side && !empty(l) && !slices.Contains(owners, l.Owner) {
				owners = append(owners, l.Owner)
			}
		}
		if len(owners) == 0 {
			continue
		}
		for i, r := range g.packed.Neighbourhoods(ctx, side, owners) {
			if !r.Found {
				return nil, false
			}
			sets[List{side, owners[i]}] = r.Value.Peers
		}
	}
	return sets, len(sets) > 0
}

func anyOne(sets map[List]*idset.Set) *idset.Set {
	for _, s := range sets {
		return s
	}
	return nil
}

// termOf is a filter over sets. Whoever has no set has an empty list.
func termOf(f Filter, sets map[List]*idset.Set) (t idset.Term) {
	for _, l := range f.On {
		t.All = append(t.All, idset.Term{Set: sets[l]})
	}
	for _, p := range f.All {
		if p.Not != nil {
			not := termOf(*p.Not, sets)
			not.Not = true
			t.All = append(t.All, not)
		} else {
			t.All = append(t.All, termOf(p, sets))
		}
	}
	for _, p := range f.Any {
		t.Any = append(t.Any, termOf(p, sets))
	}
	return t
}
