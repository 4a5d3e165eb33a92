package resolvers

import (
	"context"
	"errors"
	"slices"

	"kith/accounts"
	"kith/graph/apierr"
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
	p := r.payload(ctx, s, d, wantedRows[storage.Edge]{rows, s.of("request")})
	payload := &model.FriendRequestPayload{
		Changed: o.Changed,
		Viewer:  p.viewer, User: p.user, Relationship: p.relationship,
	}
	for _, request := range r.requestsOf(ctx, rows, s.of("request"), here(ctx, s.key("request"))) {
		payload.Request = request
	}
	return payload, nil
}

// The two users of a request.
var (
	requestFrom = writer(func(e storage.Edge) storage.UserID { return e.From },
		func(r *model.FriendRequest) (storage.UserID, **model.User) { return r.Row.From, &r.From })
	requestTo = writer(func(e storage.Edge) storage.UserID { return e.To },
		func(r *model.FriendRequest) (storage.UserID, **model.User) { return r.Row.To, &r.To })
)

// requestField is the request on one side of the viewer's own relationships.
func requestField(side storage.Side) *inset[storage.Pair, model.Relationship] {
	ask := func(_ context.Context, b *batch, f *selections.Field, pairs []storage.Pair) {
		own := slices.DeleteFunc(slices.Clone(pairs), func(p storage.Pair) bool { return !b.isViewers(p) })
		b.addRequests(side, seenFrom(side, own), f.Below)
	}
	return insetOf(ask, func(ctx context.Context, list []*model.Relationship, aliases []*selections.Field, at paths) {
		e := accessOf(ctx)
		var rows []storage.Edge
		var index []int
		for i, r := range list {
			if r == nil || !e.isViewers(r.Pair) {
				continue
			}
			row := loaders.Of(e.loaders, storage.EdgeLookups[side]).Load(side.Pair(r.Pair.From, r.Pair.To))
			if row.Err != nil {
				failAt(ctx, at(i), row.Err)
			}
			if row.Found && row.Value.Type != storage.None {
				rows, index = append(rows, row.Value), append(index, i)
			}
		}
		for k, request := range e.resolver.requestsOf(ctx, rows, belowOf(aliases), at.of(index...)) {
			if side == storage.Requests {
				list[index[k]].SentRequest = request
			} else {
				list[index[k]].ReceivedRequest = request
			}
		}
	})
}

// requestMessage is the message of a pending request.
var requestMessage = insetOf(
	func(_ context.Context, b *batch, _ *selections.Field, rows []storage.Edge) {
		pending := slices.DeleteFunc(slices.Clone(rows), func(row storage.Edge) bool { return row.Type != storage.Pending })
		b.ask(loaders.Of(b.loaders, storage.MessageLookups).Ask(storage.Each(pending, storage.Edge.Pair)))
	},
	func(ctx context.Context, requests []*model.FriendRequest, _ []*selections.Field, at paths) {
		messages := loaders.Of(loaders.For(ctx), storage.MessageLookups)
		for i, request := range requests {
			if request.Row.Type == storage.Pending {
				m := messages.Load(request.Row.Pair())
				if m.Err != nil {
					failAt(ctx, at(i), m.Err)
				}
				request.Text = m.Value
			}
		}
	})

// addRequests adds requests that are read on one side. When they have been, what is selected of them is next.
func (b *batch) addRequests(side storage.Side, pairs []storage.Pair, on []*selections.Object) {
	if len(pairs) == 0 {
		return
	}
	l := loaders.Of(b.loaders, storage.EdgeLookups[side])
	b.ask(l.Ask(pairs))
	b.afterwards = append(b.afterwards, func(context.Context) {
		var rows []storage.Edge
		for _, p := range pairs {
			if r := l.Load(p); r.Found && r.Value.Type != storage.None {
				rows = append(rows, r.Value)
			}
		}
		if len(rows) > 0 {
			b.next = append(b.next, wantedRows[storage.Edge]{rows, on})
		}
	})
}

func askRequestNodes(_ context.Context, b *batch, ids []nodeID, on []*selections.Object) {
	for _, side := range requestSides {
		b.addRequests(side, b.requestsOn(side, storage.Each(ids, nodeID.pair)), on)
	}
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
	showParts(ctx, requests, on, at)
	return requests
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
			r := loaders.Of(e.loaders, storage.EdgeLookups[side]).Load(p)
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
