package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/model"
	"kith/identity"
	"kith/loaders"
	"kith/storage"
)

// relationshipsOf makes the relationships that a selection asks for, from what the
// loaders hold. One whose shard did not answer is nil, with an error at its path.
func relationshipsOf(ctx context.Context, pairs []storage.Pair, sel ast.SelectionSet, path func(i int) ast.Path) []*model.Relationship {
	viewer, _ := identity.Of(ctx)
	n := needsOfRelationship(ctx, sel)
	list := make([]*model.Relationship, len(pairs))
	for i, p := range pairs {
		halves, err := halvesOf(ctx, p, n)
		if err != nil {
			failAt(ctx, []ast.Path{path(i)}, err)
			continue
		}
		list[i] = &model.Relationship{
			Pair: p, Out: halves[storage.Forward], Back: halves[storage.Inverse],
			IsViewers: p.From == viewer.ID,
		}
	}
	from := relationshipEnds(ctx, list, storage.Forward, n.from, n.fromKeys, path)
	to := relationshipEnds(ctx, list, storage.Inverse, n.to, n.toKeys, path)
	for _, r := range list {
		if r != nil {
			r.From, r.To = from[r.Pair.From], to[r.Pair.To]
		}
	}
	return list
}

// halvesOf are the edges of a relationship that its needs name.
func halvesOf(ctx context.Context, p storage.Pair, n relationshipNeeds) (halves [2]storage.Edge, err error) {
	l := loaders.For(ctx)
	for _, side := range sides {
		if !n.sides[side] || p.From == p.To {
			continue
		}
		r := l.Edges(side).Load(ctx, side.Pair(p.From, p.To))
		if r.Err != nil {
			return halves, r.Err
		}
		halves[side] = r.Value
	}
	return halves, nil
}

// relationshipEnds makes the users at one end of all relationships, by id; none
// when sel is nil. Errors are told below relationships that are there only.
func relationshipEnds(ctx context.Context, list []*model.Relationship, side storage.Side, sel ast.SelectionSet, keys []string, path func(i int) ast.Path) map[storage.UserID]*model.User {
	if sel == nil {
		return nil
	}
	var pairs []storage.Pair
	for _, r := range list {
		if r != nil {
			pairs = append(pairs, r.Pair)
		}
	}
	ids := endsOf(pairs, side)
	where := func(k int) []ast.Path {
		var paths []ast.Path
		for i, r := range list {
			if r == nil || side.Owner(r.Pair) != ids[k] {
				continue
			}
			for _, key := range keys {
				paths = append(paths, append(path(i), ast.PathName(key)))
			}
		}
		return paths
	}
	ends := make(map[storage.UserID]*model.User, len(ids))
	for k, u := range usersOf(ctx, wanted{users: ids, exist: true, sel: sel}, where) {
		ends[ids[k]] = u
	}
	return ends
}

// relationshipAt answers a field that is one relationship.
func relationshipAt(ctx context.Context, p storage.Pair) *model.Relationship {
	here := func(int) ast.Path { return below(ctx) }
	return relationshipsOf(ctx, []storage.Pair{p}, selectedHere(ctx), here)[0]
}
