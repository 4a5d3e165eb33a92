package resolvers

import (
	"context"
	"time"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// dismissedFor is how long a dismissal lasts.
const dismissedFor = 180 * 24 * time.Hour

// suggestionOrders are the orders of the schema.
var suggestionOrders = map[model.SuggestionOrder]social.SuggestionOrder{
	model.SuggestionOrderMutualCount: social.ByMutualCount,
	model.SuggestionOrderAdamicAdar:  social.ByAdamicAdar,
}

// suggested is the query of `followSuggestions`, and its result.
type suggested struct {
	query social.SuggestionQuery
	found social.Suggestions
}

func (q setQuestion) suggestions(ctx context.Context, r *Resolver, via int) (setAnswer, error) {
	if open, err := isOpen(ctx, social.List{Side: storage.Forward, Owner: q.user}); err != nil || !open {
		return closed, err
	}
	query := social.SuggestionQuery{User: q.user, Order: q.arguments.orderBy, First: q.arguments.size, Via: via}
	var err error
	if q.arguments.from != "" {
		if query.From, err = r.decodeSuggestionMark(q.arguments.from, query); err != nil {
			return setAnswer{}, err
		}
	}
	if r.Popular != nil {
		query.Popular = r.Popular.Users
	}
	if query.Dismissed, err = r.dismissedBy(ctx, q.user); err != nil {
		return setAnswer{}, err
	}
	s, err := q.graph.Suggest(ctx, query)
	if err != nil {
		return setAnswer{}, err
	}
	page := make([]item, len(s.Suggestions))
	var last social.SuggestionMark
	for i, one := range s.Suggestions {
		last = social.SuggestionMark{Pool: query.From.Pool, Score: one.Score, ID: one.ID, Popular: s.Popular}
		page[i] = item{user: one.ID, cursor: encodeSuggestionMark(ctx, query, last)}
	}
	var beyond func() string
	if len(page) == 0 || s.Next != last {
		beyond = func() string { return encodeSuggestionMark(ctx, query, s.Next) }
	}
	return setAnswer{page: page, info: pageInfoOf(page, s.More, beyond), complete: s.Complete, suggested: suggested{query, s}}, nil
}

func (userFields) FollowSuggestions(ctx context.Context, obj *model.User, _ *int32, _ *string, _ model.SuggestionOrder) (*model.SuggestionConnection, error) {
	f := planned(ctx)
	a := stateOf(ctx).setAnswer(f, obj.UserID)
	if a.err != nil || a.isClosed {
		return nil, a.err
	}
	return suggestionConnection(ctx, f, a), nil
}

// dismissedBy lists the users whom the viewer has dismissed, for its own suggestions. The time is
// exact to a day, and the same for the whole request.
func (r *Resolver) dismissedBy(ctx context.Context, user storage.UserID) ([]storage.UserID, error) {
	if viewer, ok := identity.Of(ctx); !ok || viewer.ID != user {
		return nil, nil
	}
	since := storage.MicrosOf(r.Relations.Now().Add(-dismissedFor))
	answer := r.Store.Dismissals(ctx, []storage.DismissalQuery{{User: user, Since: since}})[0]
	return answer.Value, answer.Err
}

func suggestionConnection(ctx context.Context, f *selections.Field, a *setAnswer) *model.SuggestionConnection {
	users, places := usersOnPage(ctx, f, a.page)
	query, s := a.suggested.query, a.suggested.found
	c := &model.SuggestionConnection{
		Nodes: users, Complete: a.complete,
		Edges:    make([]*model.SuggestionEdge, len(users)),
		PageInfo: a.info,
		Excluded: &model.SuggestionExclusions{
			Followed: int32(s.Excluded.Followed), Blocked: int32(s.Excluded.Blocked), Dismissed: int32(s.Excluded.Dismissed),
		},
	}
	unit := query.Order.Unit()
	if s.Popular {
		unit = 1
	}
	for i, place := range places {
		one := s.Suggestions[place]
		reason := model.SuggestionReasonFollowedByFollowings
		switch {
		case s.Popular && one.Pinned():
			reason = model.SuggestionReasonPinned
		case s.Popular:
			reason = model.SuggestionReasonPopular
		}
		c.Edges[i] = &model.SuggestionEdge{
			Cursor: a.page[place].cursor, Node: users[i],
			Score: float64(one.Score) / float64(unit), MutualCount: int32(one.Mutual),
			Reason: reason, Via: one.Via,
		}
	}
	return c
}

func (r mutations) DismissSuggestion(ctx context.Context, id string) (*model.DismissSuggestionPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	if viewer == other {
		return nil, clientError(social.ErrSelf)
	}
	now := r.Relations.Now()
	if err := r.dismiss(ctx, viewer, other, now); err != nil {
		return nil, err
	}
	s := payloadSelection(ctx)
	fetch(ctx,
		wanted{users: []storage.UserID{viewer}, exist: s.has("viewer"), on: s.of("viewer")},
		wanted{users: []storage.UserID{other}, exist: s.has("user"), on: s.of("user")},
	)
	return &model.DismissSuggestionPayload{
		Viewer: s.user(ctx, "viewer", viewer, true),
		User:   s.user(ctx, "user", other, true),
	}, nil
}

func (r *Resolver) dismiss(ctx context.Context, viewer, other storage.UserID, now time.Time) error {
	switch user := loaders.For(ctx).Users.Fetch([]storage.UserID{other})[0]; {
	case user.Err != nil:
		return user.Err
	case !user.Found || isAbsent(ctx, other):
		return apierr.NotFound("there is no such user")
	}
	return r.Dismissals.Dismiss(ctx, viewer, other, storage.MicrosOf(now), storage.MicrosOf(now.Add(-dismissedFor)))
}

// viaNeeds is what the `via` fields below a connection of suggestions need.
type viaNeeds struct {
	most int                  // the greatest `first` of them
	on   []*selections.Object // of them all
}

const defaultVia = 3

func viaOf(ctx context.Context, suggestions *selections.Field) viaNeeds {
	var n viaNeeds
	for _, edges := range suggestions.Below[0].Named("edges") {
		for _, f := range edges.Below[0].Named("via") {
			size, _ := argument[int](stateOf(ctx), f)
			n.most = max(n.most, size)
			n.on = append(n.on, f.Below...)
		}
	}
	return n
}

func (suggestionFields) Via(ctx context.Context, obj *model.SuggestionEdge, _ *int32) ([]*model.User, error) {
	f := planned(ctx)
	size, err := argument[int](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	w := wanted{users: obj.Via[:min(size, len(obj.Via))], on: f.Below}
	return usersOf(ctx, w, each(ctx)), nil
}

// The cursor of a suggestion belongs to a user and an order. It names the following behind which the
// pool starts, who may be hidden.
func encodeSuggestionMark(ctx context.Context, q social.SuggestionQuery, m social.SuggestionMark) string {
	popular := int64(0)
	if m.Popular {
		popular = 1
	}
	seal := resolverOf(ctx).away(m.Pool == storage.Position{})
	return seal.Encode(cursor.RankedSuggestions, int64(q.User), int64(q.Order), popular,
		int64(m.Pool.UpdateTime), int64(m.Pool.Peer), m.Score, int64(m.ID))
}

func (r *Resolver) decodeSuggestionMark(text string, q social.SuggestionQuery) (social.SuggestionMark, error) {
	var user, order, popular, at, peer, score, id int64
	if err := r.Cursors.Decode(cursor.RankedSuggestions, text, &user, &order, &popular, &at, &peer, &score, &id); err != nil {
		return social.SuggestionMark{}, err
	}
	if storage.UserID(user) != q.User || social.SuggestionOrder(order) != q.Order {
		return social.SuggestionMark{}, otherList(text)
	}
	pool := storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	return social.SuggestionMark{Pool: pool, Score: score, ID: storage.UserID(id), Popular: popular == 1}, nil
}
