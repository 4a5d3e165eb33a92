package social

import (
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// Hidden users are taken out of numbered sets as sets. The one of the absent is the same
// for everybody and is remembered with the numbers of the users; that of the viewer's
// blocks is made once for an answer. Those of plain sets, which are short, are looked at one
// by one.
//
// An erased user is in neither set. An edge to such a user comes only by a
// late event and stays until it is repaired: it may be counted in the number of a long
// list, as it is in the owner's counts, and is never shown.

// hiddenSets are whom an audience must not be shown, as sets that have nobody in common.
type hiddenSets [2]*idset.Set

// hiddenIn returns the sets by the numbers of a directory; none where nobody is hidden.
func (a *Audience) hiddenIn(dir *idset.Directory) []*idset.Set {
	if a.HidesAtMost() == 0 {
		return nil
	}
	a.setsMu.Lock()
	defer a.setsMu.Unlock()
	if a.sets[0] == nil || a.sets[0].Directory() != dir {
		a.sets = hiddenSets{dir.Known(nil), idset.Build(dir, slices.DeleteFunc(slices.Clone(a.blocked()), a.Lacks))}
		if a.absent != nil {
			a.sets[0] = dir.Remember(a.absent.IDs()).Remove(a.Viewer)
		}
	}
	return a.sets[:]
}

// blocked are those in a block with the viewer.
func (a *Audience) blocked() []storage.UserID {
	if a == nil {
		return nil
	}
	if _, found := slices.BinarySearch(a.blocks, a.Viewer); !found {
		return a.blocks
	}
	return slices.DeleteFunc(slices.Clone(a.blocks), func(id storage.UserID) bool { return id == a.Viewer })
}

// shownOf means those whom a term of numbered sets means, without hidden users.
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
