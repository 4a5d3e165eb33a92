package social

import (
	"context"

	"kith/storage"
	"kith/storage/idset"
)

// Packed has lists in memory, as sets. What it does not have is read as rows.
type Packed interface {
	// Neighbourhoods returns the lists of owners. Not Found are those that are too long,
	// or not worth it: the caller reads their rows. An error is treated like that, too.
	Neighbourhoods(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[idset.List]
}

// Lists in memory are asked first, and rows where one of them is missing. Both ways give
// the same users in the same order, with the same totals and the same marks, so that a
// page made one way is followed by one made the other. Only [Common.Complete] and its
// like may differ: the budget is for rows, of which the first way examines none. It counts
// whole chunks of users at a time, and what it goes through one by one takes a place in
// the budget for every placesPerRow of them.

// packedPlan is what is done one by one, and what with whole sets.
type packedPlan struct {
	fewCommon    int // so many common users are looked at, to see who is hidden
	fewPlaces    int // so long a list is gone through whole, counting on the way
	fewHidden    int // so many hidden users are looked up in a list
	placesPerRow int // so many places of a list are gone through in less than the time that one row takes
}

var packedDefaults = packedPlan{fewCommon: 128, fewPlaces: 256, fewHidden: 16, placesPerRow: 64}

// WithPacked has the graph ask for lists in memory first; nil: it reads rows only.
func (g *Graph) WithPacked(p Packed) *Graph {
	with := *g
	with.packed = p
	return &with
}

// places is how many places of a list in memory one answer may go through.
func (g *Graph) places() int { return int(g.budget) * g.plan.placesPerRow }

// packedPair returns two lists, if both are in memory.
func (g *Graph) packedPair(ctx context.Context, a, b List) (pair [2]idset.List, ok bool) {
	if g.packed == nil {
		return pair, false
	}
	if a.Side == b.Side {
		both := g.packed.Neighbourhoods(ctx, a.Side, []storage.UserID{a.Owner, b.Owner})
		if !both[0].Found || !both[1].Found {
			return pair, false
		}
		return [2]idset.List{both[0].Value, both[1].Value}, true
	}
	for i, l := range [2]List{a, b} {
		r := g.packed.Neighbourhoods(ctx, l.Side, []storage.UserID{l.Owner})[0]
		if !r.Found {
			return pair, false
		}
		pair[i] = r.Value
	}
	return pair, true
}
