package social

import (
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// Hidden users are subtracted from numbered sets as sets. The set of absent users is the same
// for all viewers and is kept with the numbers of the users; the set of the viewer's
// blocks is made once for an answer. Plain sets are short; their users are checked one
// by one.
//
// A user who was erased more than an hour ago is in neither set. Only a late event can write an edge to such a user,
// which stays until it is repaired: the total of a long list may count it,
// as the owner's counts do, but no page shows it.

// hiddenSets are the users whom an audience must not be shown, as disjoint sets.
type hiddenSets [2]*idset.Set

// hiddenIn returns the sets by the numbers of a directory; none if nobody is hidden.
func (a *Audience) hiddenIn(dir *idset.Directory) []*idset.Set {
	if a.HidesAtMost() == 0 {
		return nil
	}
	a.setsMu.Lock()
	defer a.setsMu.Unlock()
	if a.sets[0] == nil || a.sets[0].Directory() != dir {
		a.sets = hiddenSets{dir.Known(nil), idset.Build(dir, slices.DeleteFunc(slices.Clone(a.blocked()), a.IsAbsent))}
		if a.absent != nil {
			a.sets[0] = dir.Remember(a.absent.IDs()).Remove(a.Viewer)
		}
	}
	return a.sets[:]
}

// blocked are the users in a block with the viewer.
func (a *Audience) blocked() []storage.UserID {
	if a == nil {
		return nil
	}
	if _, found := slices.BinarySearch(a.blocks, a.Viewer); !found {
		return a.blocks
	}
	return slices.DeleteFunc(slices.Clone(a.blocks), func(id storage.UserID) bool { return id == a.Viewer })
}

// shownOf is a term of numbered sets, without hidden users.
func (a *Audience) shownOf(dir *idset.Directory, t idset.Term) idset.Term {
	shown := idset.Term{All: slices.Clone(t.All)}
	if len(t.All) == 0 {
		shown.All = []idset.Term{t}
	}
	for _, hidden := range a.hiddenIn(dir) {
		shown.All = append(shown.All, idset.Term{Set: hidden, Not: true})
	}
	return shown
}

// hiddenOn counts the users of a list who are hidden.
func (g *Graph) hiddenOn(list *idset.Set) (n int) {
	a := g.audience
	switch dir := list.Directory(); {
	case a.HidesAtMost() <= g.sizes.fewHidden:
		for _, id := range a.Hidden() {
			if list.Contains(id) {
				n++
			}
		}
	case dir == nil:
		n = list.Len() - len(a.showing(list.IDs()))
	default:
		for _, hidden := range a.hiddenIn(dir) {
			n += idset.Common(list, hidden)
		}
	}
	return n
}
