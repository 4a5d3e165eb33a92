package social

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// A plain list is a range of an index, newest first, of which hidden users are left
// out. If any user is hidden, a page reads a little more than it holds, and reads on until it is
// full or the list has ended. The total of the list is the owner's count less those hidden users
// who are on the list.

// Ahead is what to read first for a page of q.Limit users: one more, to learn whether there is one,
// and some to replace hidden users.
func (a *Audience) Ahead(q storage.PageQuery) storage.PageQuery {
	q.Limit += 1 + min(a.HidesAtMost(), 2+q.Limit/10)
	return q
}

// Show makes pages, newest first, from reads ahead: asked are the queries that [Audience.Ahead] made of queries,
// and read are their answers. If too many users were hidden, it reads on, for all pages together.
func (g *Graph) Show(ctx context.Context, side storage.Side, queries, asked []storage.PageQuery, read []storage.Result[[]storage.Edge]) []storage.Result[Page[storage.Edge]] {
	pages := make([]pageInProgress, len(queries))
	for i, q := range queries {
		pages[i] = pageInProgress{side: side, size: q.Limit, next: asked[i], examinable: int(g.budget)}
		pages[i].take(read[i], g.audience)
	}
	for {
		var open []*pageInProgress
		var more []storage.PageQuery
		for i := range pages {
			if p := &pages[i]; p.err == nil && !p.end && len(p.kept) <= p.size && p.examinable > 0 {
				open = append(open, p)
				more = append(more, p.next)
			}
		}
		if len(open) == 0 {
			break
		}
		for i, r := range storage.PageLookups[side].Read(ctx, g.store, more...) {
			open[i].take(r, g.audience)
			open[i].next.Limit = min(4*open[i].next.Limit, g.sizes.stride)
		}
	}
	return storage.Each(pages, pageInProgress.result)
}

// pageInProgress is a page that is being filled.
type pageInProgress struct {
	side       storage.Side
	size       int
	next       storage.PageQuery // what to read on with
	examinable int

	kept []storage.Edge // newest first
	end  bool           // the list has ended
	last storage.Position
	err  error
}

// take adds what one read has brought.
func (p *pageInProgress) take(r storage.Result[[]storage.Edge], a *Audience) {
	if p.err = r.Err; p.err != nil {
		return
	}
	edges := r.Value
	p.examinable -= len(edges)
	p.end = len(edges) < p.next.Limit
	if len(edges) == 0 {
		return
	}
	if p.next.Backward {
		p.last = p.side.Position(edges[0])
		p.next.Before = p.last
	} else {
		p.last = p.side.Position(edges[len(edges)-1])
		p.next.After = p.last
	}
	shown := edges
	if a.hidesAny() {
		shown = slices.DeleteFunc(slices.Clone(edges), func(e storage.Edge) bool { return a.Hides(p.side.Peer(e.Pair())) })
	}
	switch {
	case len(p.kept) == 0:
		p.kept = shown
	case p.next.Backward:
		p.kept = append(slices.Clip(shown), p.kept...)
	default:
		p.kept = append(slices.Clip(p.kept), shown...)
	}
}

func (p pageInProgress) result() (r storage.Result[Page[storage.Edge]]) {
	r.Value.Rows, r.Value.More = p.kept, true
	switch r.Found, r.Err = p.err == nil, p.err; {
	case p.err != nil:
		r.Value = Page[storage.Edge]{}
	case len(p.kept) > p.size && p.next.Backward:
		r.Value.Rows = p.kept[len(p.kept)-p.size:]
	case len(p.kept) > p.size:
		r.Value.Rows = p.kept[:p.size]
	case p.end:
		r.Value.More = false
	default:
		r.Value.End = storage.Place{CreatedAt: p.last.UpdateTime, Number: int64(p.last.Peer)}
	}
	return r
}

// Size is how many users of a list an audience can page through. It is not Complete
// if the budget ended first: then Total is a lower bound.
type Size struct {
	Total    int64
	Complete bool
}

// Sizes counts plain lists of one side. On lists in memory, hidden users are counted as sets. If
// they are few compared with the list, they are looked up in its index; otherwise the list is read whole. If that does not fit what is
// left of the budget, also for other lists, the Total is the length less all hidden users, a lower bound.
func (g *Graph) Sizes(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[Size] {
	sizes := make([]storage.Result[Size], len(owners))
	hidden := int64(g.audience.HidesAtMost())
	var lists []*neededList
	var of, probed []int // indexes into sizes
	for i, r := range storage.CountLookups.Read(ctx, g.store, owners...) {
		n := r.Value.Of(side)
		sizes[i] = storage.Result[Size]{Value: Size{n, true}, Found: true, Err: r.Err}
		if r.Err == nil && n > 0 && hidden > 0 {
			lists, of = append(lists, &neededList{List: List{side, owners[i]}, length: n}), append(of, i)
		}
	}
	g.recall(ctx, lists)
	var whole []*neededList
	left := int64(g.left())
	for k, l := range lists {
		rows, isProbed := l.length, hidden*probeCost < l.length || hidden <= sparse
		if isProbed {
			rows = hidden
		}
		switch {
		case l.set != nil:
			continue
		case rows > max(left, sparse):
			sizes[of[k]].Value = Size{Total: max(0, l.length-hidden)}
			continue
		case isProbed:
			probed = append(probed, of[k])
		default:
			whole = append(whole, l)
		}
		left -= rows
	}
	g.read(ctx, whole)
	for k, l := range lists {
		if size := &sizes[of[k]]; l.err != nil {
			size.Err = l.err
		} else if l.set != nil {
			size.Value.Total = max(0, size.Value.Total-int64(g.hiddenOn(l.set)))
			g.audience.noticeOn(idset.Term{Set: l.set})
		}
	}
	g.subtractProbed(ctx, side, owners, probed, sizes)
	return sizes
}

// sparse is the number of hidden users up to which they are looked up. If there are more, the list
// is read.
const sparse = 50

// subtractProbed looks all hidden users up on the lists of some owners.
func (g *Graph) subtractProbed(ctx context.Context, side storage.Side, owners []storage.UserID, which []int, sizes []storage.Result[Size]) {
	if len(which) == 0 {
		return
	}
	hidden := g.audience.Hidden()
	pairs := make([]storage.Pair, 0, len(which)*len(hidden))
	for _, i := range which {
		for _, id := range hidden {
			pairs = append(pairs, side.Pair(owners[i], id))
		}
	}
	g.examine(len(pairs))
	for k, r := range storage.EdgeLookups[side].Read(ctx, g.store, pairs...) {
		size := &sizes[which[k/len(hidden)]]
		switch {
		case r.Err != nil:
			size.Err = r.Err
		case r.Found && r.Value.Type == storage.Following && g.audience.Hides(hidden[k%len(hidden)]):
			size.Value.Total = max(0, size.Value.Total-1)
		}
	}
}
