package resolvers

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// followManyAt answers `followMany`.
func (r *Resolver) followManyAt(ctx context.Context, texts []string) (*model.FollowManyPayload, error) {
	viewer, err := r.actorOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs(texts, maxIDs)
	if err != nil {
		return nil, err
	}
	others := list.good
	ties, stale, err := r.Ties.Follow(ctx, loaders.For(ctx).Reader(), viewer, others)
	if err != nil {
		return nil, viewerGone(err)
	}
	token := tokenOf(ties)
	s := payloadSelection(ctx, "FollowManyPayload")
	selected, key := outcomeSelection(ctx, s)
	r.await(ctx, done{token: token, late: token, stale: stale}, s.readsInverse(ctx) || selected.readsInverse(ctx))

	pairs := make([]storage.Pair, len(others))
	for i, other := range others {
		pairs[i] = storage.Pair{From: viewer, To: other}
	}
	rememberTies(ctx, ties)
	many := outcomesOf{selection: selected, key: key, place: list.place}
	fetch(ctx,
		wanted{users: []storage.UserID{viewer}, sel: s.of("viewer")},
		wanted{users: others, exist: selected.has("user"), sel: selected.of("user")},
		wanted{pairs: pairs, sel: selected.of("relationship")},
	)
	users := many.users(ctx, others)
	relationships := many.relationships(ctx, pairs)
	r.explain(ctx, viewer, others, ties)
	outcomes := make([]*model.FollowOutcome, len(texts))
	for i, tie := range ties {
		outcomes[list.place(i)] = &model.FollowOutcome{
			UserID: others[i].String(), Changed: tie.Changed, User: users[i], Relationship: relationships[i],
			Error: followError(tie.Err),
		}
	}
	for _, w := range list.wrong {
		outcomes[w.place] = &model.FollowOutcome{UserID: abridged(texts[w.place]), Error: followError(w.err)}
	}
	return &model.FollowManyPayload{
		Viewer:           s.user(ctx, "viewer", viewer, false),
		ConsistencyToken: r.Tokens.Text(token),
		Outcomes:         outcomes,
	}, nil
}

// explain says of those follows that are forbidden why they are.
func (r *Resolver) explain(ctx context.Context, viewer storage.UserID, others []storage.UserID, ties []social.Tie) {
	var who []storage.UserID
	var which []int
	for i, tie := range ties {
		if errors.Is(tie.Err, storage.ErrForbidden) {
			who, which = append(who, others[i]), append(which, i)
		}
	}
	if len(who) == 0 {
		return
	}
	for k, err := range r.forbidden(ctx, viewer, who) {
		ties[which[k]].Err = err
	}
}

// followError is why one of many follows was refused.
func followError(err error) *model.FollowError {
	if err == nil {
		return nil
	}
	if known, ok := apierr.Of(clientError(err)); ok {
		return &model.FollowError{Code: string(known.Code), Message: known.Message}
	}
	if errors.Is(err, storage.ErrUnavailable) {
		return &model.FollowError{Code: string(apierr.CodeUnavailable), Message: "a part of the data cannot be reached at the moment"}
	}
	return &model.FollowError{Code: string(apierr.CodeInternal), Message: "something went wrong"}
}

// outcomeSelection is what is selected on each outcome, and the response key of
// the list.
func outcomeSelection(ctx context.Context, s selection) (selection, string) {
	list, ok := s["outcomes"]
	if !ok {
		return nil, ""
	}
	fields := selection{}
	for _, f := range fieldsOf(ctx, list.Selections, "FollowOutcome") {
		fields[f.Name] = f
	}
	return fields, list.Alias
}

type outcomesOf struct {
	selection
	key   string
	place func(i int) int // in the answer
}

func (o outcomesOf) users(ctx context.Context, ids []storage.UserID) []*model.User {
	f, ok := o.selection["user"]
	if !ok {
		return make([]*model.User, len(ids))
	}
	return usersOf(ctx, wanted{users: ids, exist: true, sel: f.Selections}, func(i int) []ast.Path {
		return []ast.Path{below(ctx, o.key, o.place(i), f.Alias)}
	})
}

func (o outcomesOf) relationships(ctx context.Context, pairs []storage.Pair) []*model.Relationship {
	f, ok := o.selection["relationship"]
	if !ok {
		return make([]*model.Relationship, len(pairs))
	}
	return relationshipsOf(ctx, pairs, f.Selections, func(i int) ast.Path { return below(ctx, o.key, o.place(i), f.Alias) })
}
