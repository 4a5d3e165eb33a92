package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/identity"
	"kith/loaders"
	"kith/storage"
)

// wanted is a group of users or of relationships on one level of a query, with the
// selection on them.
type wanted struct {
	users []storage.UserID
	exist bool // read the users' rows even when no field of them is selected

	pairs []storage.Pair

	sel ast.SelectionSet
}

// fetch reads all that a level and the levels below it need into the request's
// loaders: on each level one batch for each look-up, all of them at once.
//
// The set answers among them are announced at the end: nobody computes one before,
// and a member of the crowd that fetches would wait for them.
func fetch(ctx context.Context, level ...wanted) {
	sets := 0
	for len(level) > 0 {
		b := batchOf(ctx, level)
		sets += b.sets
		level = b.run(ctx)
	}
	loaders.For(ctx).Crowd.Expect(sets)
}

// batch is what one level asks of each loader.
type batch struct {
	rows   []storage.UserID
	counts []storage.UserID
	edges  [2][]storage.Pair
	pages  [2][]storage.PageQuery

	lists []listed // whose users make the next level
	next  []wanted
	sets  int // set answers that will be computed on this level
}

// listed is a run of pages[side] whose users share a selection.
type listed struct {
	side        storage.Side
	page        pageArguments
	first, last int
	sel         ast.SelectionSet
}

func batchOf(ctx context.Context, level []wanted) batch {
	var b batch
	for _, w := range level {
		if len(w.users) > 0 {
			b.addUsers(ctx, w)
		}
		if len(w.pairs) > 0 {
			b.addRelationships(w.pairs, needsOfRelationship(ctx, w.sel))
		}
	}
	return b
}

func (b *batch) addUsers(ctx context.Context, w wanted) {
	n := needsOfUsers(ctx, w.sel)
	if n.row || w.exist {
		b.rows = append(b.rows, w.users...)
	}
	if n.counts {
		b.counts = append(b.counts, w.users...)
	}
	b.sets += n.sets * len(w.users)
	for _, r := range n.relationships {
		pairs := make([]storage.Pair, len(w.users))
		for i, id := range w.users {
			pairs[i] = storage.Pair{From: id, To: r.to}
		}
		b.addRelationships(pairs, r.relationshipNeeds)
	}
	for _, r := range n.viewer {
		b.addRelationships(viewerPairs(ctx, w.users), r)
	}
	for _, l := range n.lists {
		if !l.rows {
			continue
		}
		first := len(b.pages[l.side])
		for _, id := range w.users {
			b.pages[l.side] = append(b.pages[l.side], l.page.query(id))
		}
		if l.users != nil {
			b.lists = append(b.lists, listed{l.side, l.page, first, len(b.pages[l.side]), l.users})
		}
	}
}

// viewerPairs is the viewer towards each of the users.
func viewerPairs(ctx context.Context, users []storage.UserID) []storage.Pair {
	viewer, _ := identity.Of(ctx)
	pairs := make([]storage.Pair, len(users))
	for i, id := range users {
		pairs[i] = storage.Pair{From: viewer.ID, To: id}
	}
	return pairs
}

func (b *batch) addRelationships(pairs []storage.Pair, n relationshipNeeds) {
	for _, side := range sides {
		if n.sides[side] {
			b.edges[side] = append(b.edges[side], seenFrom(side, pairs)...)
		}
	}
	if n.from != nil {
		b.next = append(b.next, wanted{users: endsOf(pairs, storage.Forward), exist: true, sel: n.from})
	}
	if n.to != nil {
		b.next = append(b.next, wanted{users: endsOf(pairs, storage.Inverse), exist: true, sel: n.to})
	}
}

var sides = [...]storage.Side{storage.Forward, storage.Inverse}

// seenFrom turns pairs for a side so that both halves of a relationship are read
// on the shard of its first user: from → to is in its `following`, to → from in
// its `follower`. Of a user with itself there is nothing to read.
func seenFrom(side storage.Side, pairs []storage.Pair) []storage.Pair {
	turned := make([]storage.Pair, 0, len(pairs))
	for _, p := range pairs {
		if p.From != p.To {
			turned = append(turned, side.Pair(p.From, p.To))
		}
	}
	return turned
}

// endsOf lists one end of every pair, each once.
func endsOf(pairs []storage.Pair, side storage.Side) []storage.UserID {
	seen := make(map[storage.UserID]bool, len(pairs))
	var ids []storage.UserID
	for _, p := range pairs {
		if id := side.Owner(p); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// run reads everything at once and returns the next level.
func (b *batch) run(ctx context.Context) []wanted {
	l := loaders.For(ctx)
	users, counts := l.Users.Ask(ctx, b.rows), l.Counts.Ask(ctx, b.counts)
	var edges [2]*loaders.Asked[storage.Pair, storage.Edge]
	var lists [2]*loaders.Asked[storage.PageQuery, []storage.Edge]
	for _, side := range sides {
		edges[side] = l.Edges(side).Ask(ctx, b.edges[side])
		lists[side] = l.Pages(side).Ask(ctx, b.pages[side])
	}
	l.Dispatch(ctx, users, counts, edges[0], edges[1], lists[0], lists[1])

	users.Results()
	counts.Results()
	var pages [2][]storage.Result[[]storage.Edge]
	for _, side := range sides {
		edges[side].Results()
		pages[side] = lists[side].Results()
	}
	for _, list := range b.lists {
		var ids []storage.UserID
		for i := list.first; i < list.last; i++ {
			edges, _ := list.page.trim(pages[list.side][i].Value)
			for _, e := range edges {
				ids = append(ids, list.side.Peer(e.Pair()))
			}
		}
		if len(ids) > 0 {
			b.next = append(b.next, wanted{users: ids, sel: list.sel})
		}
	}
	return b.next
}
