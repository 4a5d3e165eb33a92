package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// Mark is where a continued answer goes on: behind the id After, with Found
// answers up to there. Its zero value is the beginning.
type Mark struct {
	After storage.UserID
	Found int
}

// Common is a page of what two lists have in common, by ascending id.
type Common struct {
	IDs []storage.UserID

	// Total counts the whole intersection, when Complete; otherwise what has been
	// found so far, pages before this one included.
	Total    int
	Complete bool

	// More tells that something may come behind this page; Next is where.
	More bool
	Next Mark
}

// Intersect returns the first ids that both lists have in common behind a mark, without
// hidden users.
//
// Lists in memory are intersected as sets. Of rows, a first look at both lists settles it when they are short. Otherwise a list
// that has ended, or is far shorter by its count, is probed into the index of the
// longer one; two long lists are walked together in order of id, each skipping to
// where the other stands. Neither is ever held as a whole.
func (g *Graph) Intersect(ctx context.Context, a, b List, from Mark, first int) (Common, error) {
	if c, ok := g.intersectPacked(ctx, a, b, from, first); ok {
		return c, nil
	}
	in := &intersection{
		graph: g, first: first, examinable: int(g.budget),
		lists: [2]*cursor{{List: a, last: from.After}, {List: b, last: from.After}},
		found: from.Found, decided: from.After,
	}
	if err := in.run(ctx); err != nil {
		return Common{}, fmt.Errorf("intersect %s of user %s with %s of user %s: %w",
			a.Side, a.Owner, b.Side, b.Owner, err)
	}
	return in.page(from), nil
}

// intersection is the state of one Intersect. Every common id up to decided has
// been found.
type intersection struct {
	graph      *Graph
	lists      [2]*cursor
	first      int
	examinable int // rows left in the budget

	ids     []storage.UserID // the page
	found   int
	decided storage.UserID
	done    bool
}

// cursor is a place in one list: the peers read ahead, and how far the list has
// been examined.
type cursor struct {
	List
	ahead []storage.UserID
	last  storage.UserID
	end   bool // nothing lies behind last
}

// drained tells that the list has nothing more to offer.
func (c *cursor) drained() bool { return c.end && len(c.ahead) == 0 }

func (in *intersection) run(ctx context.Context) error {
	planned, err := in.readKnown(ctx)
	if err != nil {
		return err
	}
	if err := in.read(ctx, in.graph.firstLook); err != nil {
		return err
	}
	in.merge()
	for !in.done && in.examinable > 0 {
		// What is left of a list that has ended is in memory.
		short := in.ended()
		if short == nil && !planned {
			planned = true
			lengths, err := in.lengths(ctx)
			if err != nil {
				return err
			}
			if short = in.farShorter(lengths); short == nil {
				if err := in.readWhole(ctx, lengths); err != nil {
					return err
				}
				in.merge()
				continue
			}
		}
		if short != nil {
			return in.probe(ctx, short)
		}
		if err := in.read(ctx, in.graph.stride); err != nil {
			return err
		}
		in.merge()
	}
	return nil
}

// ended is a list of which all is in memory, unless that is a long one.
func (in *intersection) ended() *cursor {
	for _, c := range in.lists {
		if c.end && len(c.ahead) <= in.graph.stride {
			return c
		}
	}
	return nil
}

// read reads ahead in every list that has nothing left in memory.
func (in *intersection) read(ctx context.Context, limit int) error {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var who []*cursor
		var queries []storage.WalkQuery
		for k, c := range in.lists {
			if c.Side != side || len(c.ahead) > 0 || c.end {
				continue
			}
			// Whatever the other list has skipped need not be looked at here.
			if other := in.lists[1-k]; len(other.ahead) > 0 {
				c.last = max(c.last, other.ahead[0]-1)
			}
			who = append(who, c)
			queries = append(queries, storage.WalkQuery{Owner: c.Owner, After: c.last, Limit: limit})
		}
		if len(queries) == 0 {
			continue
		}
		for i, r := range in.graph.store.Walks(ctx, side, queries) {
			if r.Err != nil {
				return r.Err
			}
			w := r.Value
			who[i].ahead, who[i].last, who[i].end = w.Peers, max(w.Last, who[i].last), w.End
			in.examinable -= w.Examined
		}
	}
	return nil
}

// merge compares what is in memory, until one list has nothing left there.
func (in *intersection) merge() {
	a, b := in.lists[0], in.lists[1]
	for len(a.ahead) > 0 && len(b.ahead) > 0 {
		switch x, y := a.ahead[0], b.ahead[0]; {
		case x < y:
			a.ahead = a.ahead[1:]
		case y < x:
			b.ahead = b.ahead[1:]
		default:
			in.hit(x)
			a.ahead, b.ahead = a.ahead[1:], b.ahead[1:]
		}
	}
	in.done = a.drained() || b.drained()
	for _, c := range in.lists {
		if len(c.ahead) == 0 && !c.end {
			// Whatever the other list has up to there has been compared, or it would
			// still be in memory.
			in.decided = max(in.decided, c.last)
		}
	}
}

func (in *intersection) hit(id storage.UserID) {
	if in.graph.audience.Hides(id) {
		return
	}
	in.found++
	if len(in.ids) < in.first {
		in.ids = append(in.ids, id)
	}
}

// farShorter returns the list whose members are better looked up in the other one,
// or nil where walking both is cheaper.
func (in *intersection) farShorter(n [2]int64) *cursor {
	switch {
	case n[0]*probeCost < n[1]:
		return in.lists[0]
	case n[1]*probeCost < n[0]:
		return in.lists[1]
	}
	return nil
}

// probe looks the members of a list up in the other one, to the end.
func (in *intersection) probe(ctx context.Context, short *cursor) error {
	long := in.lists[0]
	if long == short {
		long = in.lists[1]
	}
	for {
		for len(short.ahead) > 0 && in.examinable > 0 {
			n := min(len(short.ahead), in.graph.probes, in.examinable)
			if err := in.look(ctx, long.List, short.ahead[:n]); err != nil {
				return err
			}
			in.decided = short.ahead[n-1]
			short.ahead = short.ahead[n:]
		}
		if len(short.ahead) > 0 {
			return nil // the budget has ended
		}
		in.decided = max(in.decided, short.last)
		if in.done = short.end; in.done || in.examinable <= 0 {
			return nil
		}
		if err := in.readOne(ctx, short); err != nil {
			return err
		}
	}
}

func (in *intersection) readOne(ctx context.Context, c *cursor) error {
	r := in.graph.store.Walks(ctx, c.Side, []storage.WalkQuery{{Owner: c.Owner, After: c.last, Limit: in.graph.stride}})[0]
	if r.Err != nil {
		return r.Err
	}
	c.ahead, c.last, c.end = r.Value.Peers, max(r.Value.Last, c.last), r.Value.End
	in.examinable -= r.Value.Examined
	return nil
}

// look finds which of the ids are on a list.
func (in *intersection) look(ctx context.Context, l List, ids []storage.UserID) error {
	pairs := make([]storage.Pair, len(ids))
	for i, id := range ids {
		pairs[i] = l.Side.Pair(l.Owner, id)
	}
	in.examinable -= len(ids)
	for i, r := range in.graph.store.Edges(ctx, l.Side, pairs) {
		if r.Err != nil {
			return r.Err
		}
		if r.Found && r.Value.Type == storage.Following {
			in.hit(ids[i])
		}
	}
	return nil
}

func (in *intersection) page(from Mark) Common {
	c := Common{IDs: in.ids, Total: in.found, Complete: in.done}
	onPage := from.Found + len(in.ids)
	if !in.done && (in.first == 0 || onPage == in.found) {
		// The budget has ended before the page was full.
		c.More, c.Next = true, Mark{in.decided, in.found}
		return c
	}
	c.More, c.Next = onPage < in.found, Mark{from.After, onPage}
	if len(in.ids) > 0 {
		c.Next.After = in.ids[len(in.ids)-1]
	}
	return c
}
