package social

import (
	"context"
	"math"

	"kith/storage"
	"kith/storage/idset"
)

// intersectPacked is Intersect where both lists are in memory. It tells whether they are.
func (g *Graph) intersectPacked(ctx context.Context, a, b List, from Mark, first int) (c Common, ok bool) {
	pair, ok := g.packedPair(ctx, a, b)
	if !ok {
		return Common{}, false
	}
	x, y := pair[0].Peers, pair[1].Peers
	return g.shownPage(from, first, func(after storage.UserID, first int, hide bool) ([]storage.UserID, int) {
		if !hide {
			return idset.Intersect(x, y, after, first)
		}
		return idset.Select(g.audience.shownOf(x.Directory(), idset.Term{Set: x}, idset.Term{Set: y}), after, first)
	})
}

// shownPage makes a page of what sets have in common. find returns the first ids of it
// behind one, and how many there are in all, without hidden users if hide is true. The
// page's total is that number, and not carried on from the mark. It is not ok if
// somebody turns out to be hidden after all.
func (g *Graph) shownPage(from Mark, first int, find func(after storage.UserID, first int, hide bool) ([]storage.UserID, int)) (c Common, ok bool) {
	few := g.plan.fewCommon
	ids, total := find(0, few, false)
	if total <= few {
		// All are at hand, and whom nothing but the audience knows to be gone is not counted.
		shown := g.audience.showing(ids)
		return commonPage(behind(shown, from.After), len(shown), from, first), true
	}
	if hide := g.audience.HidesAtMost() > 0; hide || from.After > 0 || first >= few {
		ids, total = find(from.After, first+1, hide)
	}
	page := ids[:min(first+1, len(ids))]
	if len(g.audience.showing(page)) < len(page) {
		return Common{}, false
	}
	return commonPage(page, total, from, first), true
}

// commonPage makes the page of the ids behind a mark, of which one more has been asked for
// than it holds.
func commonPage(ids []storage.UserID, total int, from Mark, first int) Common {
	c := Common{Total: total, Complete: true, More: len(ids) > first}
	c.IDs = ids[:min(first, len(ids))]
	c.Next = Mark{from.After, from.Found + len(c.IDs)}
	if n := len(c.IDs); n > 0 {
		c.Next.After = c.IDs[n-1]
	}
	return c
}

// behind is what of ascending ids lies behind one.
func behind(ids []storage.UserID, after storage.UserID) []storage.UserID {
	return stretch{ids: ids, last: math.MaxInt64, end: true}.behind(after)
}
