package social

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// Companions asks for those on one list who are also on another one, or who are not:
// friends are followings who are fans, too; fans not followed back are fans who are no
// followings. The answer has the base list's order, newest first.
type Companions struct {
	Base, Other List
	Absent      bool // those who are not on the other list
}

// Friends are the mutual follows of a user, its newest following first. Both halves of
// every pair lie on the user's own shard.
func Friends(user storage.UserID) Companions {
	return Companions{Base: List{storage.Forward, user}, Other: List{storage.Inverse, user}}
}

// NotFollowingBack are the followings of a user who do not follow it.
func NotFollowingBack(user storage.UserID) Companions {
	return Companions{Base: List{storage.Forward, user}, Other: List{storage.Inverse, user}, Absent: true}
}

// NotFollowedBack are the fans of a user whom it does not follow.
func NotFollowedBack(user storage.UserID) Companions {
	return Companions{Base: List{storage.Inverse, user}, Other: List{storage.Forward, user}, Absent: true}
}

// CompanionMark is where an answer goes on: behind the place After in the base list,
// with Found companions up to there.
type CompanionMark struct {
	After storage.Position
	Found int
}

// Companion is one of them.
type Companion struct {
	ID    storage.UserID
	At    storage.Position // in the base list
	Other storage.Micros   // when the edge of the other list came to be; 0 where there is none, or the lists are of two users
}

// hasOther tells whether it matters when the edges of the other list came to be: that of a
// friendship is the later of two.
func (q Companions) hasOther() bool { return !q.Absent && q.Base.Owner == q.Other.Owner }

// CompanionPage is a page of companions. Its other fields are those of [Common].
type CompanionPage struct {
	Companions []Companion
	Total      int
	Complete   bool
	More       bool
	Next       CompanionMark
}

// Fits tells whether the whole base list can be looked through within one budget, and
// how many rows that takes. Lists in memory always fit.
func (g *Graph) Fits(ctx context.Context, q Companions) (rows int64, fits bool, err error) {
	if _, ok := g.packedPair(ctx, q.Base, q.Other); ok {
		return 0, true, nil
	}
	base, _, err := g.lengths(ctx, q)
	if err != nil {
		return 0, false, fmt.Errorf("read counts of user %s: %w", q.Base.Owner, err)
	}
	return 2 * base, 2*base <= int64(g.budget), nil
}

// lengths reads how long both lists are.
func (g *Graph) lengths(ctx context.Context, q Companions) (base, other int64, err error) {
	counts := g.store.Counts(ctx, []storage.UserID{q.Base.Owner, q.Other.Owner})
	for _, r := range counts {
		if r.Err != nil {
			return 0, 0, r.Err
		}
	}
	return counts[0].Value.Of(q.Base.Side), counts[1].Value.Of(q.Other.Side), nil
}

// Companions returns the first companions behind a mark, without hidden users.
//
// Lists in memory are compared as sets, in the order of the base. Of rows, where far fewer
// are on the other list than on the base, and only those on both are
// asked for, they are looked up in the base and sorted; where all others are asked for, they
// are counted by leaving those out; otherwise the base is walked, newest first, and looked up
// in the other list.
func (g *Graph) Companions(ctx context.Context, q Companions, from CompanionMark, first int) (CompanionPage, error) {
	if p, ok, err := g.companionsPacked(ctx, q, from, first); ok || err != nil {
		return p, wrongCompanions(q, err)
	}
	c := &companions{Companions: q, graph: g, from: from, first: first, examinable: int(g.budget), found: from.Found, decided: from.After}
	if err := c.run(ctx); err != nil {
		return CompanionPage{}, wrongCompanions(q, err)
	}
	return c.page(), nil
}

// wrongCompanions tells what an error is about.
func wrongCompanions(q Companions, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("look up %s of user %s among %s of user %s: %w",
		q.Base.Side, q.Base.Owner, q.Other.Side, q.Other.Owner, err)
}

// companions is the state of one answer.
type companions struct {
	Companions
	graph      *Graph
	from       CompanionMark
	first      int
	examinable int

	list    []Companion // the page
	found   int
	decided storage.Position
	done    bool
}

func (c *companions) run(ctx context.Context) error {
	if c.Absent {
		return c.absent(ctx)
	}
	base, other, err := c.graph.lengths(ctx, c.Companions)
	if err != nil {
		return err
	}
	if other*probeCost < base && other < int64(c.graph.budget)/2 {
		return c.fromOther(ctx)
	}
	return c.fromBase(ctx, c.graph.firstLook, c.examinable)
}

// fromBase walks the base, so many rows at first, and examines so many rows.
func (c *companions) fromBase(ctx context.Context, limit, examinable int) error {
	for end := c.examinable - examinable; c.examinable > end; {
		query := storage.PageQuery{Owner: c.Base.Owner, After: c.decided, Limit: limit}
		r := c.graph.store.Pages(ctx, c.Base.Side, []storage.PageQuery{query})[0]
		if r.Err != nil {
			return r.Err
		}
		edges := r.Value
		c.examinable -= 2 * len(edges) // read here, looked up there
		others, err := c.look(ctx, c.Other, c.peers(edges))
		if err != nil {
			return err
		}
		for i, e := range edges {
			if isFollow(others[i]) != c.Absent {
				c.hit(e, others[i].Value)
			}
		}
		if len(edges) < limit {
			c.done = true
			return nil
		}
		c.decided = storage.PositionOf(c.Base.Side, edges[len(edges)-1])
		limit = c.graph.stride
	}
	return nil
}

// peers are the other ends of edges of the base list.
func (c *companions) peers(edges []storage.Edge) []storage.UserID {
	ids := make([]storage.UserID, len(edges))
	for i, e := range edges {
		ids[i] = c.Base.Side.Peer(e.Pair())
	}
	return ids
}

// look reads the edges of users in a list.
func (c *companions) look(ctx context.Context, l List, ids []storage.UserID) ([]storage.Result[storage.Edge], error) {
	pairs := make([]storage.Pair, len(ids))
	for i, id := range ids {
		pairs[i] = l.Side.Pair(l.Owner, id)
	}
	edges := c.graph.store.Edges(ctx, l.Side, pairs)
	for _, r := range edges {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return edges, nil
}

func isFollow(r storage.Result[storage.Edge]) bool {
	return r.Found && r.Value.Type == storage.Following
}

func (c *companions) fromOther(ctx context.Context) error {
	r := c.graph.store.Neighbours(ctx, c.Other.Side, []storage.UserID{c.Other.Owner})[0]
	if r.Err != nil {
		return r.Err
	}
	edges, err := c.look(ctx, c.Base, c.graph.audience.showing(r.Value))
	if err != nil {
		return err
	}
	var both []storage.Edge
	for _, e := range edges {
		at := storage.PositionOf(c.Base.Side, e.Value)
		if isFollow(e) && (c.from.After == storage.Position{} || at.Compare(c.from.After) > 0) {
			both = append(both, e.Value)
		}
	}
	slices.SortFunc(both, func(a, b storage.Edge) int {
		return storage.PositionOf(c.Base.Side, a).Compare(storage.PositionOf(c.Base.Side, b))
	})
	page := both[:min(c.first, len(both))]
	others, err := c.look(ctx, c.Other, c.peers(page))
	if err != nil {
		return err
	}
	for i, e := range page {
		c.hit(e, others[i].Value)
	}
	c.found += len(both) - len(page)
	c.done = true
	return nil
}

func (c *companions) hit(e, other storage.Edge) {
	at := storage.PositionOf(c.Base.Side, e)
	if c.graph.audience.Hides(at.Peer) {
		return
	}
	c.found++
	if len(c.list) < c.first {
		if !c.hasOther() {
			other = storage.Edge{}
		}
		c.list = append(c.list, Companion{at.Peer, at, other.UpdateTime})
	}
}

func (c *companions) page() CompanionPage {
	p := CompanionPage{Companions: c.list, Total: c.found, Complete: c.done}
	onPage := c.from.Found + len(c.list)
	if !c.done && (c.first == 0 || onPage == c.found) {
		// The budget has ended before the page was full.
		p.More, p.Next = true, CompanionMark{c.decided, c.found}
		return p
	}
	p.More, p.Next = onPage < c.found, CompanionMark{c.from.After, onPage}
	if n := len(c.list); n > 0 {
		p.Next.After = c.list[n-1].At
	}
	return p
}
