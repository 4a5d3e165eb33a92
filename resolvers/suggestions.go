package resolvers

import (
	"context"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/identity"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// dismissedFor is how long a dismissal holds.
const dismissedFor = 180 * 24 * time.Hour

// suggestionOrders are the orders of the schema.
var suggestionOrders = map[model.SuggestionOrder]social.SuggestionOrder{
	model.SuggestionOrderMutualCount: social.ByMutualCount,
	model.SuggestionOrderAdamicAdar:  social.ByAdamicAdar,
}

// suggestionsAt answers `followSuggestions`.
func (r *Resolver) suggestionsAt(ctx context.Context, obj *model.User, first *int32, after *string, orderBy model.SuggestionOrder) (*model.SuggestionConnection, error) {
	ctx, graph, leave, err := r.setAnswer(ctx)
	defer leave()
	if err != nil {
		return nil, err
	}
	if open, err := isOpen(ctx, social.List{Side: storage.Forward, Owner: obj.UserID}); err != nil || !open {
		return nil, err
	}
	size, text, err := setArguments(first, after)
	if err != nil {
		return nil, err
	}
	via := viaOf(ctx)
	q := social.SuggestionQuery{User: obj.UserID, Order: suggestionOrders[orderBy], First: size, Via: via.most}
	if text != "" {
		if q.From, err = r.decodeSuggestionMark(text, q); err != nil {
			return nil, err
		}
	}
	if r.Popular != nil {
		q.Popular = r.Popular.Users
	}
	if q.Dismissed, err = r.dismissedBy(ctx, obj.UserID); err != nil {
		return nil, err
	}
	s, err := graph.Suggest(ctx, q)
	if err != nil {
		return nil, err
	}
	return suggestionConnection(ctx, q, s, via), nil
}

// dismissedBy lists whom the viewer has dismissed, for its own suggestions. Days are
// enough, and the same for everything that one request asks.
func (r *Resolver) dismissedBy(ctx context.Context, user storage.UserID) ([]storage.UserID, error) {
	if viewer, ok := identity.Of(ctx); !ok || viewer.ID != user {
		return nil, nil
	}
	since := storage.MicrosOf(r.Ties.Now().Add(-dismissedFor))
	answer := r.Store.Dismissals(ctx, []storage.DismissalQuery{{User: user, Since: since}})[0]
	return answer.Value, answer.Err
}

func suggestionConnection(ctx context.Context, q social.SuggestionQuery, s social.Suggestions, via viaNeeds) *model.SuggestionConnection {
	page := make([]entry, len(s.Suggestions))
	var last social.SuggestionMark
	for i, one := range s.Suggestions {
		mark := social.SuggestionMark{Pool: q.From.Pool, Score: one.Score, ID: one.ID, Popular: s.Popular}
		page[i] = entry{user: one.ID, cursor: encodeSuggestionMark(ctx, q, mark)}
		last = mark
	}
	var beyond func() string
	if len(page) == 0 || s.Next != last {
		beyond = func() string { return encodeSuggestionMark(ctx, q, s.Next) }
	}
	f := planned(ctx)
	fetchSuggested(ctx, f, page, via, s.Suggestions)
	users := usersOnPage(ctx, f, page)
	c := &model.SuggestionConnection{
		Nodes: users, Complete: s.Complete,
		Edges:    make([]*model.SuggestionEdge, len(page)),
		PageInfo: pageInfoOf(page, s.More, beyond),
		Excluded: &model.SuggestionExclusions{
			Followed: int32(s.Excluded.Followed), Blocked: int32(s.Excluded.Blocked), Dismissed: int32(s.Excluded.Dismissed),
		},
	}
	unit := q.Order.Unit()
	if s.Popular {
		unit = 1
	}
	for i, one := range s.Suggestions {
		reason := model.SuggestionReasonFollowedByFollowings
		switch {
		case s.Popular && one.Pinned():
			reason = model.SuggestionReasonPinned
		case s.Popular:
			reason = model.SuggestionReasonPopular
		}
		c.Edges[i] = &model.SuggestionEdge{
			Cursor: page[i].cursor, Node: users[i],
			Score: float64(one.Score) / float64(unit), MutualCount: int32(one.Mutual),
			Reason: reason, Via: one.Via,
		}
	}
	return c
}

// dismissSuggestionAt answers `dismissSuggestion`.
func (r *Resolver) dismissSuggestionAt(ctx context.Context, id string) (*model.DismissSuggestionPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	if viewer == other {
		return nil, clientError(social.ErrSelf)
	}
	now := r.Ties.Now()
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
	switch user := loaders.For(ctx).Users.Fetch(ctx, []storage.UserID{other})[0]; {
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

func viaOf(ctx context.Context) viaNeeds {
	var n viaNeeds
	for _, edges := range planned(ctx).Below[0].Named("edges") {
		for _, f := range edges.Below[0].Named("via") {
			size, _ := argument[int](requestOf(ctx), f)
			n.most = max(n.most, size)
			n.on = append(n.on, f.Below...)
		}
	}
	return n
}

// fetchSuggested reads the users of a page of suggestions together with those who
// speak for them.
func fetchSuggested(ctx context.Context, f *selections.Field, page []entry, via viaNeeds, suggestions []social.Suggestion) {
	level := []wanted{{users: usersOfPage(page), on: f.Below[0].Items}}
	if via.on != nil {
		w := wanted{on: via.on}
		for _, s := range suggestions {
			w.users = append(w.users, s.Via...)
		}
		level = append(level, w)
	}
	fetch(ctx, level...)
}

// viaAt answers `via`.
func viaAt(ctx context.Context, obj *model.SuggestionEdge) ([]*model.User, error) {
	f := planned(ctx)
	size, err := argument[int](requestOf(ctx), f)
	if err != nil {
		return nil, err
	}
	w := wanted{users: obj.Via[:min(size, len(obj.Via))], on: f.Below}
	return usersOf(ctx, w, func(i int) []ast.Path { return []ast.Path{below(ctx, i)} }), nil
}

// The cursor of a suggestion belongs to a user and an order. It names the following that the
// pool comes behind, who may be hidden.
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
