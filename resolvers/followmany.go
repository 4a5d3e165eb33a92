package resolvers

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/limits"
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
	list, err := parseUserIDs(texts, limits.MaxIDs)
	if err != nil {
		return nil, err
	}
	others := list.good
	relations, stale, err := r.Relations.Follow(ctx, loaders.For(ctx).Reader(), viewer, others)
	if err != nil {
		return nil, viewerGone(err)
	}
	token := tokenOf(relations)
	s := payloadSelection(ctx)
	selected := s.below("outcomes")
	r.await(ctx, done{token: token, late: token, stale: stale}, s.readsInverse())

	pairs := make([]storage.Pair, len(others))
	for i, other := range others {
		pairs[i] = storage.Pair{From: viewer, To: other}
	}
	rememberRelations(ctx, relations)
	many := outcomesOf{selection: selected, at: s.key("outcomes"), index: list.index}
	fetch(ctx,
		wanted{users: []storage.UserID{viewer}, on: s.of("viewer")},
		wanted{users: others, exist: selected.has("user"), on: selected.of("user")},
		wanted{pairs: pairs, on: selected.of("relationship")},
	)
	users := many.users(ctx, others)
	relationships := many.relationships(ctx, pairs)
	r.explain(ctx, viewer, others, relations)
	outcomes := make([]*model.FollowOutcome, len(texts))
	for i, tie := range relations {
		outcomes[list.index(i)] = &model.FollowOutcome{
			UserID: others[i].String(), Changed: tie.Changed, User: users[i], Relationship: relationships[i],
			Error: followError(tie.Err),
		}
	}
	for _, w := range list.wrong {
		outcomes[w.index] = &model.FollowOutcome{UserID: abridged(texts[w.index]), Error: followError(w.err)}
	}
	return &model.FollowManyPayload{
		Viewer:           s.user(ctx, "viewer", viewer, false),
		ConsistencyToken: r.Tokens.Text(token),
		Outcomes:         outcomes,
	}, nil
}

// explain adds to forbidden follows why they are forbidden.
func (r *Resolver) explain(ctx context.Context, viewer storage.UserID, others []storage.UserID, relations []social.Tie) {
	var who []storage.UserID
	var which []int
	for i, tie := range relations {
		if errors.Is(tie.Err, storage.ErrForbidden) {
			who, which = append(who, others[i]), append(which, i)
		}
	}
	if len(who) == 0 {
		return
	}
	for k, err := range r.forbidden(ctx, viewer, who) {
		relations[which[k]].Err = err
	}
}

// followError is why one of many follows was refused.
func followError(err error) *model.FollowError {
	if err == nil {
		return nil
	}
	if known, ok := apierr.Of(clientError(err)); ok {
		return &model.FollowError{Code: known.Code, Message: known.Message}
	}
	switch {
	case errors.Is(err, storage.ErrCopied):
		return &model.FollowError{Code: apierr.CodeUnavailable, Message: apierr.Copied().Message}
	case errors.Is(err, storage.ErrUnavailable):
		return &model.FollowError{Code: apierr.CodeUnavailable, Message: "a part of the data cannot be reached at the moment"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &model.FollowError{Code: apierr.CodeTimeout, Message: "the request took too long"}
	}
	return &model.FollowError{Code: apierr.CodeInternal, Message: "something went wrong"}
}

type outcomesOf struct {
	selection
	at    string          // the response key of the list
	index func(i int) int // the index in the answer
}

func (o outcomesOf) users(ctx context.Context, ids []storage.UserID) []*model.User {
	if !o.has("user") {
		return make([]*model.User, len(ids))
	}
	return usersOf(ctx, wanted{users: ids, exist: true, on: o.of("user")}, func(i int) []ast.Path {
		return []ast.Path{below(ctx, o.at, o.index(i), o.key("user"))}
	})
}

func (o outcomesOf) relationships(ctx context.Context, pairs []storage.Pair) []*model.Relationship {
	if !o.has("relationship") {
		return make([]*model.Relationship, len(pairs))
	}
	return relationshipsOf(ctx, pairs, o.of("relationship"), func(i int) ast.Path { return below(ctx, o.at, o.index(i), o.key("relationship")) })
}
