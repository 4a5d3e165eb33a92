package resolvers

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/consistency"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/identity"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// viewerOf is who is signed in; an error when nobody is.
func viewerOf(ctx context.Context) (storage.UserID, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return 0, apierr.Unauthenticated("sign in first")
	}
	return viewer.ID, nil
}

// clientError says what a refused follow is to the client; other errors stay as
// they are.
func clientError(err error) error {
	switch {
	case errors.Is(err, social.ErrSelf):
		return apierr.BadInput("a user cannot follow itself")
	case errors.Is(err, storage.ErrUserUnknown):
		return apierr.NotFound("there is no such user")
	case errors.Is(err, storage.ErrLimitReached):
		return apierr.LimitReached("you follow as many users as one may")
	}
	return err
}

// followAt answers `follow`.
func (r *Resolver) followAt(ctx context.Context, id string) (*model.FollowPayload, error) {
	viewer, other, err := viewerAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	ties, stale, err := r.Ties.Follow(ctx, loaders.For(ctx).Reader(), viewer, []storage.UserID{other})
	return r.followPayload(ctx, viewer, other, ties, stale, viewerGone(err))
}

// unfollowAt answers `unfollow`.
func (r *Resolver) unfollowAt(ctx context.Context, id string) (*model.FollowPayload, error) {
	viewer, other, err := viewerAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	ties, stale, err := r.Ties.Unfollow(ctx, viewer, []storage.UserID{other})
	return r.followPayload(ctx, viewer, other, ties, stale, viewerGone(err))
}

// removeFollowerAt answers `removeFollower`.
func (r *Resolver) removeFollowerAt(ctx context.Context, id string) (*model.FollowPayload, error) {
	viewer, other, err := viewerAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	ties, stale, err := r.Ties.Unfollow(ctx, other, []storage.UserID{viewer})
	return r.followPayload(ctx, viewer, other, ties, stale, err)
}

func viewerAndOther(ctx context.Context, id string) (viewer, other storage.UserID, err error) {
	if viewer, err = viewerOf(ctx); err != nil {
		return 0, 0, err
	}
	other, err = parseUserID(id)
	return viewer, other, err
}

// viewerGone tells a viewer whom the store does not know that signing in is over.
func viewerGone(err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return apierr.Unauthenticated("the user who is signed in does not exist")
	}
	return err
}

// followPayload reads what the payload of one follow selects.
func (r *Resolver) followPayload(ctx context.Context, viewer, other storage.UserID, ties []social.Tie, stale bool, err error) (*model.FollowPayload, error) {
	if err == nil {
		err = ties[0].Err
	}
	if err != nil {
		return nil, clientError(err)
	}
	tie := ties[0]
	token := tokenOf(ties)
	s := payloadSelection(ctx, "FollowPayload")
	r.await(ctx, token, stale, s.readsInverse(ctx))

	pair := storage.Pair{From: viewer, To: other}
	remember(ctx, ties)
	// A viewer whose own edge it is exists: the store has just locked its counts.
	unsure := tie.Row.From != viewer
	fetch(ctx,
		wanted{users: []storage.UserID{viewer}, exist: unsure && s.has("viewer"), sel: s.of("viewer")},
		wanted{users: []storage.UserID{other}, exist: s.has("user") || s.has(edgeNode), sel: s.of("user", edgeNode)},
		wanted{pairs: []storage.Pair{pair}, sel: s.of("relationship")},
	)
	p := &model.FollowPayload{
		Changed:          tie.Changed,
		ConsistencyToken: token.String(),
		Viewer:           s.user(ctx, "viewer", viewer, unsure),
		User:             s.user(ctx, "user", other, true),
		Relationship:     s.relationship(ctx, pair),
	}
	if tie.Row.Type == storage.Following && tie.Row.From == viewer && s.has("followingEdge") {
		at := storage.PositionOf(storage.Forward, tie.Row)
		p.FollowingEdge = &model.UserEdge{
			Cursor:     cursor.Encode(cursor.Followings, int64(at.UpdateTime), int64(at.Peer)),
			Node:       s.user(ctx, edgeNode, other, true),
			FollowedAt: timeOf(tie.Row.UpdateTime),
		}
	}
	return p, nil
}

// tokenOf is the token of what has been written, or is there already.
func tokenOf(ties []social.Tie) consistency.Token {
	var t consistency.Token
	for _, tie := range ties {
		if tie.Row.UpdateTime > 0 {
			t = append(t, consistency.Mark{Pair: tie.Row.Pair(), Version: tie.Row.UpdateTime})
		}
	}
	return t
}

// remember spares the payload what the write has told: the rows of its edges.
func remember(ctx context.Context, ties []social.Tie) {
	l := loaders.For(ctx).Edges(storage.Forward)
	for _, tie := range ties {
		if tie.Err == nil {
			l.Prime(ctx, tie.Row.Pair(), tie.Row)
		}
	}
}

// await lets a payload that reads the inverse side see the write.
func (r *Resolver) await(ctx context.Context, token consistency.Token, stale, readsInverse bool) {
	request := consistency.For(ctx)
	request.Wrote(token)
	if stale || readsInverse && !consistency.Wait(ctx, r.Store, token, r.ConsistencyWait) {
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
