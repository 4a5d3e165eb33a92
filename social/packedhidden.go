package social

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// Hidden users are taken out of lists in memory as sets. The one of the absent is the same
// for everybody and is remembered with the numbers of the users; that of the viewer's
// blocks is made once for an answer.
//
// Somebody of whom nothing is left is in neither. An edge to such a user comes only by a
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

// shownOf means those who are meant by all of the terms, without hidden users.
func (a *Audience) shownOf(dir *idset.Directory, terms ...idset.Term) idset.Term {
	for _, hidden := range a.hiddenIn(dir) {
		terms = append(terms, idset.Term{Set: hidden, Not: true})
	}
	return idset.Term{All: terms}
}

// hiddenOn counts the users of a list who are hidden.
func (g *Graph) hiddenOn(list *idset.Set) (n int) {
	a := g.audience
	if a.HidesAtMost() <= g.plan.fewHidden {
		for _, id := range a.Hidden() {
			if list.Contains(id) {
				n++
			}
		}
		return n
	}
	for _, hidden := range a.hiddenIn(list.Directory()) {
		n += idset.Common(list, hidden)
	}
	return n
}

// commonShown counts whom two lists have in common, without hidden users.
func (a *Audience) commonShown(x, y *idset.Set) int {
	if a.HidesAtMost() == 0 {
		return idset.Common(x, y)
	}
	_, n := idset.Select(a.shownOf(x.Directory(), idset.Term{Set: x}, idset.Term{Set: y}), 0, 0)
	return n
}

// subtractPacked takes hidden users out of the sizes of those lists of some owners that
// are in memory. It returns which are not.
func (g *Graph) subtractPacked(ctx context.Context, side storage.Side, owners []storage.UserID, which []int, sizes []storage.Result[Size]) (rest []int) {
	if g.packed == nil || len(which) == 0 {
		return which
	}
	asked := make([]storage.UserID, len(which))
	for k, i := range which {
		asked[k] = owners[i]
	}
	for k, r := range g.packed.Neighbourhoods(ctx, side, asked) {
		i := which[k]
		if !r.Found {
			rest = append(rest, i)
			continue
		}
		size := &sizes[i].Value
		size.Total = max(0, size.Total-int64(g.hiddenOn(r.Value.Peers)))
	}
	return rest
}
