package social

import (
	"context"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Every answer is an expression over lists, which it gets as sets. A list is read in the
// first of these ways that is possible:
//
//   - as a numbered set that the store keeps;
//   - if it is far longer than the others: as the candidates who are on it, who
//     are looked up by key;
//   - from its packed form;
//   - whole, from its rows, if those are within the budget;
//   - as a range of its rows, behind which the next page continues. By then a store that packs
//     lists has been asked for this list, and packs it in the background.
//
// In each of these ways, pages have the same users in the same order, and a page continues
// where the one before ended.

// neededList is a list that an answer needs.
type neededList struct {
	List
	set    *idset.Set      // nil until it has been read
	order  *idset.Timeline // nil unless the store keeps the set
	length int64           // by the owner's count, or of the set
	err    error           // it could not be read
}

var sides = [2]storage.Side{storage.Forward, storage.Inverse}

// missing lists the parts of one side that have not been read, with their owners.
func missing(parts []*neededList, side storage.Side) (some []*neededList, owners []storage.UserID) {
	for i, p := range parts {
		if p.Side == side && p.set == nil && p.err == nil {
			if some == nil {
				some, owners = make([]*neededList, 0, len(parts)-i), make([]storage.UserID, 0, len(parts)-i)
			}
			some, owners = append(some, p), append(owners, p.Owner)
		}
	}
	return some, owners
}

// recall takes the lists that the store keeps as sets.
func (g *Graph) recall(ctx context.Context, parts []*neededList) {
	for _, side := range sides {
		some, owners := missing(parts, side)
		for i, r := range idset.ListLookups[side].Read(ctx, g.store, owners...) {
			if list, p := r.Value, some[i]; list != nil {
				p.set, p.order, p.length = list.Peers, list.Order, int64(list.Len())
			}
		}
	}
}

// measure reads the lengths of the lists that have not been read.
func (g *Graph) measure(ctx context.Context, parts []*neededList) {
	owners := make([]storage.UserID, 0, len(parts))
	for _, p := range parts {
		if p.set == nil {
			owners = append(owners, p.Owner)
		}
	}
	counts := storage.CountLookups.Read(ctx, g.store, owners...)
	for _, p := range parts {
		if p.set == nil {
			p.length, p.err = counts[0].Value.Of(p.Side), counts[0].Err
			counts = counts[1:]
		}
	}
}

// unpack reads long lists that are kept packed.
func (g *Graph) unpack(ctx context.Context, parts []*neededList) {
	var long []*neededList
	users := int64(0)
	for _, p := range parts {
		if p.set == nil && p.length >= g.sizes.packedFrom && users+p.length <= g.sizes.packedMost {
			long, users = append(long, p), users+p.length
		}
	}
	g.readWhole(ctx, long, storage.PackedLookups, func(int) {})
}

// read reads lists whole, from their rows.
func (g *Graph) read(ctx context.Context, parts []*neededList) {
	g.readWhole(ctx, parts, storage.NeighbourLookups, g.examine)
}

func (g *Graph) readWhole(ctx context.Context, parts []*neededList, kinds storage.SideLookups[storage.UserID, []storage.UserID], examine func(rows int)) {
	for _, side := range sides {
		some, owners := missing(parts, side)
		for _, p := range some {
			examine(int(p.length))
		}
		for i, r := range kinds[side].Read(ctx, g.store, owners...) {
			examine(len(r.Value) - int(some[i].length)) // nobody has measured some
			if some[i].err = r.Err; r.Found {
				some[i].set = idset.Of(r.Value)
			}
		}
	}
}

// readRange reads the users of a list behind a user, from so many rows. It returns the last user it
// covers: the greatest id if the list has ended.
func (g *Graph) readRange(ctx context.Context, p *neededList, after storage.UserID, rows int) (upTo storage.UserID) {
	g.examine(rows)
	r := storage.RowLookups.Read(ctx, g.store, storage.RowsQuery{Side: p.Side, Owner: p.Owner, After: after, Limit: rows})[0]
	if p.err = r.Err; r.Err != nil {
		return after
	}
	edges := r.Value
	var ids []storage.UserID
	for _, e := range edges {
		if e.Type == storage.Following {
			ids = append(ids, p.Side.Peer(e.Pair()))
		}
	}
	p.set = idset.Of(ids)
	if len(edges) < rows {
		return lastUser
	}
	return p.Side.Peer(edges[rows-1].Pair())
}

// probe looks up which of some users are on a list.
type probe struct {
	*neededList
	ids, found []storage.UserID // ascending
}

// lookUp looks up the users of all probes, some of each at a time, and makes sets of those
// who are found.
func (g *Graph) lookUp(ctx context.Context, probes []*probe) {
	for _, side := range sides {
		for g.lookUpSome(ctx, side, probes) {
		}
	}
	for _, p := range probes {
		p.set = idset.Of(p.found)
	}
}

// lookUpSome reports whether there were users to look up.
func (g *Graph) lookUpSome(ctx context.Context, side storage.Side, probes []*probe) bool {
	var pairs []storage.Pair
	var of []*probe
	for _, p := range probes {
		if p.Side != side || p.err != nil {
			continue
		}
		for _, id := range p.ids[:min(g.sizes.probes, len(p.ids))] {
			pairs, of = append(pairs, side.Pair(p.Owner, id)), append(of, p)
		}
	}
	if len(pairs) == 0 {
		return false
	}
	g.examine(len(pairs))
	for i, r := range storage.EdgeLookups[side].Read(ctx, g.store, pairs...) {
		p := of[i]
		if r.Err != nil {
			p.err = r.Err
		} else if isFollow(r) {
			p.found = append(p.found, p.ids[0])
		}
		p.ids = p.ids[1:]
	}
	return true
}

func isFollow(r storage.Result[storage.Edge]) bool {
	return r.Found && r.Value.Type == storage.Following
}
