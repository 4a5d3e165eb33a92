package social

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Among says which users of a group follow which others of the group.
type Among struct {
	// Followings are, for each user, the indexes of the users whom it follows, ascending.
	Followings [][]int

	// Complete is false if lists were left out for the budget, or edges beyond those asked for.
	Complete bool
}

// EdgesAmong returns which of some users follow which others of them. The users are distinct. It returns at
// most so many edges; visible says, by the indexes of both users, whether an edge may be shown. Hidden users
// follow nobody and are followed by nobody.
//
// A list is taken from memory, read whole, or has the users looked up in it, whichever takes less. The shortest
// lists come first, and lists for which the budget does not suffice are left out.
func (g *Graph) EdgesAmong(ctx context.Context, ids []storage.UserID, most int, visible func(from, to int) bool) (Among, error) {
	places := make(map[storage.UserID]int, len(ids))
	parts := make([]*neededList, 0, len(ids))
	for i, id := range ids {
		if !g.audience.Hides(id) {
			places[id] = i
			parts = append(parts, &neededList{List: List{storage.Forward, id}})
		}
	}
	wanted := storage.Each(parts, func(p *neededList) storage.UserID { return p.Owner })
	slices.Sort(wanted)
	g.recall(ctx, parts)
	g.measure(ctx, parts)
	complete := g.readAmong(ctx, parts, wanted)

	answer := Among{Followings: make([][]int, len(ids)), Complete: complete}
	term := termOf(wanted)
	edges := 0
	for _, p := range parts {
		if p.err != nil {
			return Among{}, fmt.Errorf("read %s among %d users: %w", p.List, len(ids), p.err)
		}
		if p.set == nil {
			continue
		}
		from := places[p.Owner]
		followed, _ := idset.Select(idset.Term{All: []idset.Term{{Set: p.set}, {Set: term(p.set)}}}, 0, len(wanted))
		var on []int
		for _, id := range followed {
			if to := places[id]; visible(from, to) {
				on = append(on, to)
			}
		}
		slices.Sort(on)
		if rest := most - edges; len(on) > rest {
			on, answer.Complete = on[:rest], false
		}
		edges += len(on)
		answer.Followings[from] = on
	}
	return answer, nil
}

// readAmong reads the lists that are not in memory, as far as the budget goes, and reports whether
// all of them were read.
func (g *Graph) readAmong(ctx context.Context, parts []*neededList, wanted []storage.UserID) (complete bool) {
	var whole []*neededList
	var probes []*probe
	missing := storage.Filter(parts, func(p *neededList) bool { return p.set == nil && p.err == nil })
	slices.SortStableFunc(missing, func(a, b *neededList) int { return cmp.Compare(a.length, b.length) })
	look := probeCost * len(wanted)
	left := g.left()
	complete = true
	for _, p := range missing {
		rows := int(min(p.length, int64(look)))
		if rows > left {
			complete = false
			break // those behind it take at least as much
		}
		left -= rows
		if p.length <= int64(look) {
			whole = append(whole, p)
		} else {
			probes = append(probes, &probe{neededList: p, ids: wanted})
		}
	}
	g.read(ctx, whole)
	g.lookUp(ctx, probes)
	return complete
}

// termOf returns a function that makes a set of some ascending users to be compared with another
// set: with the numbers of its directory, once for each.
func termOf(ids []storage.UserID) func(*idset.Set) *idset.Set {
	plain := idset.Of(ids)
	known := map[*idset.Directory]*idset.Set{}
	return func(with *idset.Set) *idset.Set {
		dir := with.Directory()
		if dir == nil {
			return plain
		}
		if known[dir] == nil {
			known[dir] = dir.Known(ids)
		}
		return known[dir]
	}
}
