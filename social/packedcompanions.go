package social

import (
	"context"

	"kith/storage"
	"kith/storage/idset"
)

// companionsPacked is Companions where both lists are in memory. It tells whether they
// are. The total is of now, and not carried on from the mark.
func (g *Graph) companionsPacked(ctx context.Context, q Companions, from CompanionMark, first int) (_ CompanionPage, ok bool, err error) {
	pair, ok := g.packedPair(ctx, q.Base, q.Other)
	if !ok {
		return CompanionPage{}, false, nil
	}
	c := &packedCompanions{Companions: q, graph: g, base: pair[0], other: pair[1], from: from}
	p := CompanionPage{Complete: true}
	var at []storage.Position
	if c.base.Order.Len() <= min(g.plan.fewPlaces, g.places()) {
		at, p.Total = c.all()
	} else {
		p.Total = c.total()
		want := first + 1
		if from.After == (storage.Position{}) {
			want = min(want, p.Total) // behind the last of them there is nothing to look for
		}
		if at, p.Complete = c.behind(want); !p.Complete {
			p.Total = from.Found + len(at)
		}
	}
	page := at[:min(first, len(at))]
	p.Next = CompanionMark{from.After, from.Found + len(page)}
	switch {
	case !p.Complete:
		p.More, p.Next = true, CompanionMark{c.last, p.Total}
	case len(page) > 0:
		p.More, p.Next.After = len(at) > first, page[len(page)-1]
	default:
		p.More = len(at) > first
	}
	p.Companions, err = c.made(ctx, page)
	return p, true, err
}

// packedCompanions is the state of one answer.
type packedCompanions struct {
	Companions
	graph       *Graph
	base, other idset.List
	from        CompanionMark
	last        storage.Position // how far the base has been gone through
}

// all goes through the whole base. It returns those behind the mark, and the number of
// all.
func (c *packedCompanions) all() (behind []storage.Position, total int) {
	n := max(1, c.base.Order.Len())
	shown := c.shown(c.base.Order.Among(c.other.Peers, c.Absent, storage.Position{}, n, n).Positions)
	behind = shown
	if c.from.After != (storage.Position{}) {
		for len(behind) > 0 && behind[0].Compare(c.from.After) <= 0 {
			behind = behind[1:]
		}
	}
	return behind, len(shown)
}

// behind goes through the base from the mark on, until it has found so many, or the
// budget ends and it is not complete.
func (c *packedCompanions) behind(want int) (found []storage.Position, complete bool) {
	c.last = c.from.After
	if want == 0 {
		return nil, true
	}
	examinable := c.graph.places()
	for most := want; examinable > 0; most = 4 * want {
		a := c.base.Order.Among(c.other.Peers, c.Absent, c.last, most, examinable)
		c.last = a.Last
		examinable -= a.Examined
		if found = append(found, c.shown(a.Positions)...); len(found) >= want || a.End {
			return found[:min(want, len(found))], true
		}
	}
	return found, false
}

// shown leaves hidden users out of positions, which it may change.
func (c *packedCompanions) shown(positions []storage.Position) []storage.Position {
	if !c.graph.audience.hidesAny() {
		return positions
	}
	kept := positions[:0]
	for _, p := range positions {
		if !c.graph.audience.Hides(p.Peer) {
			kept = append(kept, p)
		}
	}
	return kept
}

// total counts all companions by sets: whoever of the base is not common is absent from
// the other list.
func (c *packedCompanions) total() int {
	common := c.graph.audience.commonShown(c.base.Peers, c.other.Peers)
	if !c.Absent {
		return common
	}
	return c.base.Peers.Len() - c.graph.hiddenOn(c.base.Peers) - common
}

// made makes companions of the page. When the edges of the other list came to be is in
// their rows, which are read only where that matters.
func (c *packedCompanions) made(ctx context.Context, page []storage.Position) ([]Companion, error) {
	if len(page) == 0 {
		return nil, nil
	}
	made := make([]Companion, len(page))
	pairs := make([]storage.Pair, len(page))
	for i, at := range page {
		made[i] = Companion{ID: at.Peer, At: at}
		pairs[i] = c.Other.Side.Pair(c.Other.Owner, at.Peer)
	}
	if !c.hasOther() {
		return made, nil
	}
	for i, r := range c.graph.store.Edges(ctx, c.Other.Side, pairs) {
		if r.Err != nil {
			return nil, r.Err
		}
		if isFollow(r) {
			made[i].Other = r.Value.UpdateTime
		}
	}
	return made, nil
}
