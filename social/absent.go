package social

import (
	"context"
	"slices"

	"kith/storage"
)

// Whoever is on a long list and not on a far shorter one is nearly everybody: the fans of a
// celebrity whom it does not follow back. Looking through a list of a million for their
// number takes a second, and ends at the budget besides. But the long list is counted, and
// who must not be counted are few: those on the short list, and hidden users. They are looked
// up in the long list, and left out of its page.

// fewLeftOut is how many hidden users may be looked up for one answer.
const fewLeftOut = 1000

// absent walks the base, unless it is found to be long.
func (c *companions) absent(ctx context.Context) error {
	if err := c.fromBase(ctx, c.graph.firstLook, min(c.examinable, 1)); err != nil || c.done || c.examinable <= 0 {
		return err
	}
	base, other, err := c.graph.lengths(ctx, c.Companions)
	if err != nil {
		return err
	}
	if c.isNearlyAll(base, other) {
		c.list, c.found, c.decided = nil, c.from.Found, c.from.After
		return c.fromAll(ctx, base)
	}
	return c.fromBase(ctx, c.graph.stride, c.examinable)
}

// isNearlyAll tells whether the answer is nearly the whole base.
func (c *companions) isNearlyAll(base, other int64) bool {
	hidden := int64(c.graph.audience.HidesAtMost())
	return c.Absent && hidden <= fewLeftOut && (other+hidden)*probeCost < base && other+hidden < int64(c.examinable)/2
}

// fromAll counts by leaving out, and reads the base only for the page.
func (c *companions) fromAll(ctx context.Context, base int64) error {
	r := c.graph.store.Neighbours(ctx, c.Other.Side, []storage.UserID{c.Other.Owner})[0]
	if r.Err != nil {
		return r.Err
	}
	without := slices.Concat(r.Value, c.graph.audience.Hidden())
	slices.Sort(without)
	without = slices.Compact(without)
	looked, err := c.look(ctx, c.Base, without)
	if err != nil {
		return err
	}
	c.examinable -= len(r.Value) + len(without)
	total := int(base)
	for _, e := range looked {
		if isFollow(e) {
			total--
		}
	}
	more, err := c.pageWithout(ctx, without)
	if err != nil {
		return err
	}
	// The count and the page are of two moments: where they disagree, the page is right.
	onPage := c.from.Found + len(c.list)
	switch {
	case !c.done:
		c.found = onPage
	case more:
		c.found = max(total, onPage+1)
	case c.first > 0:
		c.found = onPage
	default:
		c.found = max(total, onPage)
	}
	return nil
}

// pageWithout reads the base behind the mark until the page is full, and tells whether there
// is more. It is not done if the budget ends first.
func (c *companions) pageWithout(ctx context.Context, without []storage.UserID) (more bool, err error) {
	if c.first == 0 {
		c.done = true
		return false, nil
	}
	for limit := c.first + 1; c.examinable > 0; limit = c.graph.stride {
		query := storage.PageQuery{Owner: c.Base.Owner, After: c.decided, Limit: limit}
		r := c.graph.store.Pages(ctx, c.Base.Side, []storage.PageQuery{query})[0]
		if r.Err != nil {
			return false, r.Err
		}
		c.examinable -= len(r.Value)
		for _, e := range r.Value {
			at := storage.PositionOf(c.Base.Side, e)
			if _, left := slices.BinarySearch(without, at.Peer); !left {
				if len(c.list) == c.first {
					c.done = true
					return true, nil
				}
				c.list = append(c.list, Companion{ID: at.Peer, At: at})
			}
			c.decided = at
		}
		if len(r.Value) < limit {
			c.done = true
			return false, nil
		}
	}
	return false, nil
}
