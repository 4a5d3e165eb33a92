package resolvers

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/consistency"
	"kith/graph/model"
	"kith/social"
	"kith/storage"
)

// done is what a mutation has done between the viewer and another user.
type done struct {
	viewer, other storage.UserID
	unsure        bool // whether there is such a viewer

	token consistency.Token // of all that was written
	late  consistency.Token // of what may still be on its way to its other side
	stale bool              // some of it will not come by itself
}

// doneBy is what an outcome of the rules has done.
func doneBy(ctx context.Context, viewer, other storage.UserID, o social.Outcome) done {
	d := done{viewer: viewer, other: other, unsure: o.Row.Edge.From != viewer, stale: o.Stale}
	for _, w := range o.Written {
		d.token = append(d.token, markOf(w.Row))
		if !w.Inverse {
			d.late = append(d.late, markOf(w.Row))
		}
		if w.Side == storage.Forward {
			remember(ctx, w.Edge)
		}
	}
	return d
}

// parts are the fields that all payloads between two users have.
type parts struct {
	viewer, user *model.User
	relationship *model.Relationship
}

// payload reads what is selected on the parts, and whatever else the payload needs,
// once the write has arrived where that is read.
func (r *Resolver) payload(ctx context.Context, s selection, d done, more ...wanted) parts {
	r.await(ctx, d, s.readsInverse(ctx))
	pair := storage.Pair{From: d.viewer, To: d.other}
	fetch(ctx, append(more,
		wanted{users: []storage.UserID{d.viewer}, exist: d.unsure && s.has("viewer"), sel: s.of("viewer")},
		wanted{users: []storage.UserID{d.other}, exist: s.has("user") || s.has(edgeNode), sel: s.of("user", edgeNode)},
		wanted{pairs: []storage.Pair{pair}, sel: s.of("relationship")},
	)...)
	return parts{
		viewer:       s.user(ctx, "viewer", d.viewer, d.unsure),
		user:         s.user(ctx, "user", d.other, true),
		relationship: s.relationship(ctx, pair),
	}
}

// await lets a payload that reads the inverse side see the write.
func (r *Resolver) await(ctx context.Context, d done, readsInverse bool) {
	request := consistency.For(ctx)
	request.Wrote(d.token)
	if d.stale || readsInverse && !r.Tokens.Wait(ctx, d.late) {
		request.Stale()
	}
}

// selection is what a payload selects, by field.
type selection map[string]graphql.CollectedField

func payloadSelection(ctx context.Context, payload string) selection {
	s := selection{}
	for _, f := range fieldsOf(ctx, selectedHere(ctx), payload) {
		if first, ok := s[f.Name]; ok { // once more under another alias
			f.Selections = append(append(ast.SelectionSet{}, first.Selections...), f.Selections...)
			f.Alias = first.Alias
		}
		s[f.Name] = f
	}
	if edge, ok := s["followingEdge"]; ok {
		for _, f := range fieldsOf(ctx, edge.Selections, "UserEdge") {
			if f.Name == "node" {
				s[edgeNode] = f
			}
		}
	}
	return s
}

// edgeNode is the node of the followingEdge.
const edgeNode = "followingEdge.node"

func (s selection) has(field string) bool {
	_, ok := s[field]
	return ok
}

// of joins what is selected on some fields.
func (s selection) of(fields ...string) ast.SelectionSet {
	var sel ast.SelectionSet
	for _, name := range fields {
		sel = append(sel, s[name].Selections...)
	}
	return sel
}

// readsInverse tells whether anything selected comes from the inverse side.
func (s selection) readsInverse(ctx context.Context) bool {
	for _, name := range []string{"viewer", "user", edgeNode} {
		if needsOfUsers(ctx, s.of(name)).readsInverse(ctx) {
			return true
		}
	}
	return needsOfRelationship(ctx, s.of("relationship")).readsInverse(ctx)
}

// user makes the user of a field; nil when it is not selected. A user of whom it is
// unsure whether it exists has been read.
func (s selection) user(ctx context.Context, field string, id storage.UserID, unsure bool) *model.User {
	f, ok := s[field]
	if !ok {
		return nil
	}
	w := wanted{users: []storage.UserID{id}, exist: unsure, sel: f.Selections}
	path := below(ctx, f.Alias)
	if field == edgeNode {
		path = below(ctx, s["followingEdge"].Alias, f.Alias)
	}
	return usersOf(ctx, w, func(int) []ast.Path { return []ast.Path{path} })[0]
}

func (s selection) relationship(ctx context.Context, p storage.Pair) *model.Relationship {
	f, ok := s["relationship"]
	if !ok {
		return nil
	}
	return relationshipsOf(ctx, []storage.Pair{p}, f.Selections, func(int) ast.Path { return below(ctx, f.Alias) })[0]
}
