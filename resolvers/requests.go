package resolvers

import (
	"context"
	"errors"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r mutations) RequestFriend(ctx context.Context, id string, message *string) (*model.FriendRequestPayload, error) {
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
		err = apierr.TooManyRequests.Error("you have as many requests pending, or follow as many users, as one may")
	}
	return r.requestPayload(ctx, viewer, other, o, err)
}

func (r mutations) AcceptFriend(ctx context.Context, id string) (*model.FriendRequestPayload, error) {
	return r.changeRequest(ctx, id, r.Relations.Accept)
}

func (r mutations) DeclineFriend(ctx context.Context, id string) (*model.FriendRequestPayload, error) {
	return r.changeRequest(ctx, id, r.Relations.Decline)
}

func (r mutations) CancelFriendRequest(ctx context.Context, id string) (*model.FriendRequestPayload, error) {
	return r.changeRequest(ctx, id, r.Relations.Cancel)
}

func (r mutations) RemoveFriend(ctx context.Context, id string) (*model.FriendRequestPayload, error) {
	return r.changeRequest(ctx, id, r.Relations.Remove)
}

// changeRequest changes an existing request or friendship.
func (r *Resolver) changeRequest(ctx context.Context, id string, act func(ctx context.Context, user, other storage.UserID) (social.Outcome, error)) (*model.FriendRequestPayload, error) {
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
		Changed: o.Changed,
		Viewer:  p.viewer, User: p.user, Relationship: p.relationship,
	}
	for _, request := range r.requestsOf(ctx, rows, s.of("request"), here(ctx, s.key("request"))) {
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
	return storage.Each(rows, func(row storage.Edge) storage.UserID { return side.Owner(row.Pair()) })
}

// requestsOf makes requests whose rows are known and whose users have been fetched.
func (r *Resolver) requestsOf(ctx context.Context, rows []storage.Edge, on []*selections.Object, at paths) []*model.FriendRequest {
	if len(rows) == 0 {
		return nil
	}
	now, ttl := r.Relations.Now(), r.Relations.Rules.Load().RequestTTL
	requests := storage.Each(rows, func(row storage.Edge) *model.FriendRequest {
		return &model.FriendRequest{Row: row, Now: now, TTL: ttl}
	})
	selected := fieldsOn(on)
	if asked := aheadOn(selected, fields.Message, storage.Forward); asked != nil {
		r.readMessages(ctx, requests, at.below(asked))
	}
	for _, side := range sides {
		asked := aheadOn(selected, fields.End, side)
		if asked == nil {
			continue
		}
		for i, u := range usersOf(ctx, wanted{users: endsOfRequests(rows, side), exist: true, on: belowOf(asked)}, at.below(asked)) {
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
func (r *Resolver) readMessages(ctx context.Context, requests []*model.FriendRequest, at paths) {
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
			failAt(ctx, at(index[k]), m.Err)
		}
		requests[index[k]].Text = m.Value
	}
}

// requestsOn are those of some requests that the viewer sees on a side. Only the two users of a request see it, each
// on its own shard, and not while the other user is hidden.
func (e *access) requestsOn(side storage.Side, requests []storage.Pair) (visible []storage.Pair) {
	for _, p := range requests {
		if e.viewer != 0 && side.Owner(p) == e.viewer && !e.isAbsent(side.Peer(p)) {
			visible = append(visible, p)
		}
	}
	return visible
}

// requestOf makes a request, if the viewer sees it. It has been fetched.
func requestOf(ctx context.Context, id storage.Pair, on []*selections.Object, at paths) []*model.FriendRequest {
	var rows []storage.Edge
	e := accessOf(ctx)
	for _, side := range requestSides {
		for _, p := range e.requestsOn(side, []storage.Pair{id}) {
			r := e.loaders.Edges(side).Load(p)
			if r.Err != nil {
				failAt(ctx, at(0), r.Err)
			}
			if r.Found && r.Value.Type != storage.None {
				rows = []storage.Edge{r.Value}
			}
		}
	}
	return e.resolver.requestsOf(ctx, rows, on, at)
}
