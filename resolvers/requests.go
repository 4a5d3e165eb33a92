package resolvers

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// requestFriendAt answers `requestFriend`.
func (r *Resolver) requestFriendAt(ctx context.Context, id string, message *string) (*model.FriendRequestPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	text := ""
	if message != nil {
		if text, err = accounts.CheckText("message", *message, 0, storage.MaxMessageLength); err != nil {
			return nil, err
		}
	}
	o, err := r.Relations.Ask(ctx, loaders.For(ctx).Reader(), viewer, other, text)
	if errors.Is(err, storage.ErrLimitReached) {
		err = apierr.LimitReached("you have as many requests pending, or follow as many users, as one may")
	}
	return r.requestPayload(ctx, viewer, other, o, err)
}

// requestAt answers a change of an existing request or friendship.
func (r *Resolver) requestAt(ctx context.Context, id string, act func(ctx context.Context, user, other storage.UserID) (social.Outcome, error)) (*model.FriendRequestPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := act(ctx, viewer, other)
	return r.requestPayload(ctx, viewer, other, o, err)
}

// requestPayload reads what the payload selects.
func (r *Resolver) requestPayload(ctx context.Context, viewer, other storage.UserID, o social.Outcome, err error) (*model.FriendRequestPayload, error) {
	if err != nil {
		return nil, r.refusal(ctx, viewer, other, err)
	}
	d := doneBy(ctx, viewer, other, o)
	s := payloadSelection(ctx)
	rows := []storage.Edge{o.Row.Edge}
	if o.Row.Edge.UpdateTime == 0 || !s.has("request") {
		rows = nil
	}
	p := r.payload(ctx, s, d, wantedByRequests(rows, s.of("request"))...)
	payload := &model.FriendRequestPayload{
		Changed: o.Changed, ConsistencyToken: r.Tokens.Text(d.token),
		Viewer: p.viewer, User: p.user, Relationship: p.relationship,
	}
	for _, request := range r.requestsOf(ctx, rows, s.of("request"), func(int) []ast.Path { return []ast.Path{below(ctx, s.key("request"))} }) {
		payload.Request = request
	}
	return payload, nil
}

// wantedByRequests are the users of requests.
func wantedByRequests(rows []storage.Edge, on []*selections.Object) (level []wanted) {
	if len(rows) == 0 {
		return nil
	}
	for _, f := range fieldsOn(on) {
		if f.Ahead == fields.End {
			level = append(level, wanted{users: endsOfRequests(rows, f.Side), exist: true, on: f.Below})
		}
	}
	return level
}

// endsOfRequests is one end of each request.
func endsOfRequests(rows []storage.Edge, side storage.Side) []storage.UserID {
	ends := make([]storage.UserID, len(rows))
	for i, row := range rows {
		ends[i] = side.Owner(row.Pair())
	}
	return ends
}

// requestsOf makes requests whose rows are known and whose users have been fetched. paths are the
// paths of each request in the answer.
func (r *Resolver) requestsOf(ctx context.Context, rows []storage.Edge, on []*selections.Object, paths func(i int) []ast.Path) []*model.FriendRequest {
	if len(rows) == 0 {
		return nil
	}
	below := func(asked []*selections.Field) func(int) []ast.Path {
		return func(i int) (all []ast.Path) {
			for _, p := range paths(i) {
				for _, f := range asked {
					all = append(all, append(p[:len(p):len(p)], ast.PathName(f.Alias)))
				}
			}
			return all
		}
	}
	now := r.Relations.Now()
	requests := make([]*model.FriendRequest, len(rows))
	for i, row := range rows {
		requests[i] = &model.FriendRequest{Row: row, Now: now, TTL: r.Relations.RequestTTL}
	}
	selected := fieldsOn(on)
	if asked := aheadOn(selected, fields.Message, storage.Forward); asked != nil {
		r.readMessages(ctx, requests, below(asked))
	}
	for _, side := range sides {
		asked := aheadOn(selected, fields.End, side)
		if asked == nil {
			continue
		}
		for i, u := range usersOf(ctx, wanted{users: endsOfRequests(rows, side), exist: true, on: belowOf(asked)}, below(asked)) {
			if side == storage.Forward {
				requests[i].From = u
			} else {
				requests[i].To = u
			}
		}
	}
	return requests
}

// readMessages reads the messages of pending requests.
func (r *Resolver) readMessages(ctx context.Context, requests []*model.FriendRequest, paths func(i int) []ast.Path) {
	var pairs []storage.Pair
	var index []int
	for i, request := range requests {
		if request.Row.Type == storage.Pending {
			pairs = append(pairs, request.Row.Pair())
			index = append(index, i)
		}
	}
	if len(pairs) == 0 {
		return
	}
	for k, m := range loaders.For(ctx).Messages().Fetch(pairs) {
		if m.Err != nil {
			failAt(ctx, paths(index[k]), m.Err)
		}
		requests[index[k]].Text = m.Value
	}
}

// requestNodes fills in the requests among some nodes. Only the two users of a request see it, each
// on its own shard, and not while the other user is hidden.
func requestNodes(ctx context.Context, f *selections.Field, ids []nodeID, nodes []model.Node, path func(i int) ast.Path) {
	viewer, _ := identity.Of(ctx)
	var pairs [len(requestSides)][]storage.Pair
	var index [len(requestSides)][]int
	for i, id := range ids {
		for k, side := range requestSides {
			if viewer.ID != 0 && side.Owner(id.request) == viewer.ID && !isAbsent(ctx, side.Peer(id.request)) {
				pairs[k], index[k] = append(pairs[k], id.request), append(index[k], i)
			}
		}
	}
	l, on := loaders.For(ctx), []*selections.Object{f.On("FriendRequest")}
	for k, side := range requestSides {
		var rows []storage.Edge
		var at []int
		for j, r := range l.Edges(side).Fetch(pairs[k]) {
			if r.Err != nil {
				failAt(ctx, []ast.Path{path(index[k][j])}, r.Err)
			}
			if r.Found && r.Value.Type != storage.None {
				rows, at = append(rows, r.Value), append(at, index[k][j])
			}
		}
		fetch(ctx, wantedByRequests(rows, on)...)
		for j, request := range resolverOf(ctx).requestsOf(ctx, rows, on, func(j int) []ast.Path { return []ast.Path{path(at[j])} }) {
			nodes[at[j]] = request
		}
	}
}
