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
	l := loaders.For(ctx)
	viewer, _ := identity.Of(ctx)
	n := needsOfRelationship(ctx, sel)
	from := relationshipEnds(ctx, pairs, storage.Forward, n.from, "from", path)
	to := relationshipEnds(ctx, pairs, storage.Inverse, n.to, "to", path)
	list := make([]*model.Relationship, len(pairs))
	for i, p := range pairs {
		var halves [2]storage.Edge
		var err error
		for _, side := range sides {
			if !n.sides[side] || p.From == p.To {
				continue
			}
			r := l.Edges(side).Load(ctx, side.Pair(p.From, p.To))
			halves[side] = r.Value
			if r.Err != nil {
				err = r.Err
			}
		}
		if err != nil {
			failAt(ctx, []ast.Path{path(i)}, err)
			continue
		}
		list[i] = &model.Relationship{
			Pair: p, Out: halves[storage.Forward], Back: halves[storage.Inverse],
			From: from[p.From], To: to[p.To],
			IsViewers: p.From == viewer.ID,
		}
	}
	return list
}

// relationshipEnds makes the users at one end of all pairs, by id; none when sel
// is nil.
func relationshipEnds(ctx context.Context, pairs []storage.Pair, side storage.Side, sel ast.SelectionSet, field string, path func(i int) ast.Path) map[storage.UserID]*model.User {
	if sel == nil {
		return nil
	}
	ids := endsOf(pairs, side)
	where := func(k int) []ast.Path {
		var paths []ast.Path
		for i, p := range pairs {
			if side.Owner(p) == ids[k] {
				paths = append(paths, append(path(i), ast.PathName(field)))
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
