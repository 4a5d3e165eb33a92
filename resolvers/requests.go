package resolvers

import (
	"context"
	"errors"
	"slices"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
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
	p := r.payload(ctx, s, d, prefetch.RowsOn(rows, s.of("request")))
	payload := &model.FriendRequestPayload{
		Changed: o.Changed,
		Viewer:  p.viewer, User: p.user, Relationship: p.relationship,
		FollowingEdge: p.followingEdge, FollowerEdge: p.followerEdge,
	}
	for _, request := range r.requestsOf(ctx, rows, s.of("request"), prefetch.Here(ctx, s.key("request"))) {
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
func requestField(side storage.Side) *prefetch.Inset[storage.Pair, model.Relationship] {
	ask := func(_ context.Context, level *prefetch.Level, f *selections.Field, pairs []storage.Pair) {
		own := slices.DeleteFunc(slices.Clone(pairs), func(p storage.Pair) bool { return !isViewers(level.Access, p) })
		addRequests(level, side, seenFrom(side, own), f.Below)
	}
	return prefetch.NewInset(ask, func(ctx context.Context, list []*model.Relationship, aliases []*selections.Field, at prefetch.Paths) {
		e := prefetch.AccessOf(ctx)
		var rows []storage.Edge
		var index []int
		for i, r := range list {
			if r == nil || !isViewers(e, r.Pair) {
				continue
			}
			row := loaders.Of(e.Loaders, storage.EdgeLookups[side]).Load(side.Pair(r.Pair.From, r.Pair.To))
			if row.Err != nil {
				prefetch.FailAt(ctx, at(i), row.Err)
			}
			if row.Found && row.Value.Type != storage.None {
				rows, index = append(rows, row.Value), append(index, i)
			}
		}
		for k, request := range resolverOf(ctx).requestsOf(ctx, rows, prefetch.Below(aliases), at.Of(index...)) {
			if side == storage.Requests {
				list[index[k]].SentRequest = request
			} else {
				list[index[k]].ReceivedRequest = request
			}
		}
	})
}

// requestMessage is the message of a pending request.
var requestMessage = prefetch.NewInset(
	func(_ context.Context, level *prefetch.Level, _ *selections.Field, rows []storage.Edge) {
		pending := slices.DeleteFunc(slices.Clone(rows), func(row storage.Edge) bool { return row.Type != storage.Pending })
		level.Ask(loaders.Of(level.Loaders, storage.MessageLookups).Ask(storage.Each(pending, storage.Edge.Pair)))
	},
	func(ctx context.Context, requests []*model.FriendRequest, _ []*selections.Field, at prefetch.Paths) {
		messages := loaders.Of(loaders.For(ctx), storage.MessageLookups)
		for i, request := range requests {
			if request.Row.Type == storage.Pending {
				m := messages.Load(request.Row.Pair())
				if m.Err != nil {
					prefetch.FailAt(ctx, at(i), m.Err)
				}
				request.Text = m.Value
			}
		}
	})

// addRequests adds requests that are read on one side. When they have been, what is selected of them is next.
func addRequests(level *prefetch.Level, side storage.Side, pairs []storage.Pair, on []*selections.Object) {
	if len(pairs) == 0 {
		return
	}
	l := loaders.Of(level.Loaders, storage.EdgeLookups[side])
	level.Ask(l.Ask(pairs))
	level.Afterwards = append(level.Afterwards, func(context.Context) {
		var rows []storage.Edge
		for _, p := range pairs {
			if r := l.Load(p); r.Found && r.Value.Type != storage.None {
				rows = append(rows, r.Value)
			}
		}
		if len(rows) > 0 {
			level.Next = append(level.Next, prefetch.RowsOn(rows, on))
		}
	})
}

func askRequestNodes(_ context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object) {
	for _, side := range requestSides {
		addRequests(level, side, requestsOn(level.Access, side, storage.Each(ids, nodeID.pair)), on)
	}
}

// requestsOf makes requests whose rows are known and whose users have been fetched.
func (r *Resolver) requestsOf(ctx context.Context, rows []storage.Edge, on []*selections.Object, at prefetch.Paths) []*model.FriendRequest {
	if len(rows) == 0 {
		return nil
	}
	now, ttl := r.Relations.Now(), r.Relations.Rules.Load().RequestTTL
	requests := storage.Each(rows, func(row storage.Edge) *model.FriendRequest {
		return &model.FriendRequest{Row: row, Now: now, TTL: ttl}
	})
	prefetch.ShowParts(ctx, requests, on, at)
	return requests
}

// requestsOn are those of some requests that the viewer sees on a side. Only the two users of a request see it, each
// on its own shard, and not while the other user is hidden.
func requestsOn(e *prefetch.Access, side storage.Side, requests []storage.Pair) (visible []storage.Pair) {
	for _, p := range requests {
		if e.Viewer != 0 && side.Owner(p) == e.Viewer && !e.IsAbsent(side.Peer(p)) {
			visible = append(visible, p)
		}
	}
	return visible
}

// requestOf makes a request, if the viewer sees it. It has been fetched.
func requestOf(ctx context.Context, id storage.Pair, on []*selections.Object, at prefetch.Paths) []*model.FriendRequest {
	var rows []storage.Edge
	e := prefetch.AccessOf(ctx)
	for _, side := range requestSides {
		for _, p := range requestsOn(e, side, []storage.Pair{id}) {
			r := loaders.Of(e.Loaders, storage.EdgeLookups[side]).Load(p)
			if r.Err != nil {
				prefetch.FailAt(ctx, at(0), r.Err)
			}
			if r.Found && r.Value.Type != storage.None {
				rows = []storage.Edge{r.Value}
			}
		}
	}
	return resolverOf(ctx).requestsOf(ctx, rows, on, at)
}

// requestStates are the numbers of states in cursors. Clients keep cursors, so new states are
// added at the end. kind is the store's type for each.
var requestStates = map[model.FriendRequestState]struct {
	number int64
	kind   storage.EdgeType
}{
	model.FriendRequestStatePending:   {1, storage.Pending},
	model.FriendRequestStateAccepted:  {2, storage.Accepted},
	model.FriendRequestStateDeclined:  {3, storage.Declined},
	model.FriendRequestStateCancelled: {4, storage.Cancelled},
	model.FriendRequestStateRemoved:   {5, storage.Removed},
	model.FriendRequestStateExpired:   {6, storage.Pending},
}

func (r viewerFields) FriendRequests(ctx context.Context, obj *model.Viewer, direction model.FriendRequestDirection, state model.FriendRequestState, _ *int32, _ *string) (*model.FriendRequestConnection, error) {
	f := prefetch.Running(ctx)
	args, err := prefetch.ParsePage(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	list := r.requestList(obj.User.UserID, direction, state)
	cursors := prefetch.Cursors{Kind: cursor.FriendRequests, To: []int64{int64(list.side), requestStates[state].number}, What: "list"}
	audience, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	page, err := list.page(ctx, r.Resolver, loaders.For(ctx).Reader(), audience, args, cursors, prefetch.PageNeedsOf(f))
	if err != nil {
		return nil, err
	}
	rows := page.Made.(*edgesRead).edges
	nodes := make([]*model.FriendRequest, len(rows))
	if items := f.Below[0].Items; items != nil && len(nodes) > 0 {
		prefetch.Fetch(ctx, prefetch.RowsOn(rows, items))
		nodes = r.requestsOf(ctx, rows, items, prefetch.ItemPaths(ctx, f))
	}
	return &model.FriendRequestConnection{
		Complete: page.Complete, Total: page.Total, PageInfo: page.Info, Nodes: nodes,
		Edges: prefetch.Edges(len(nodes), func(i int) model.FriendRequestEdge {
			return model.FriendRequestEdge{Cursor: page.Cursors[i], Node: nodes[i]}
		}),
	}, nil
}

// requestList is the list of a user's requests that are now in a state.
func (r *Resolver) requestList(user storage.UserID, direction model.FriendRequestDirection, state model.FriendRequestState) ownList {
	list := ownList{side: storage.Requests, owner: user, kind: requestStates[state].kind}
	if direction == model.FriendRequestDirectionReceived {
		list.side = storage.Inbox
	}
	// Times are rounded, to a minute or so of 90 days, so that caches are asked the same again. About the time when it expires, a request
	// is neither pending nor expired.
	ttl := r.Relations.Rules.Load().RequestTTL
	step := max(1, ttl/100_000)
	expired := r.Relations.Now().Add(-ttl).Truncate(step)
	switch state {
	case model.FriendRequestStatePending:
		list.newerThan = storage.MicrosOf(expired.Add(step))
	case model.FriendRequestStateExpired:
		list.upTo = storage.MicrosOf(expired)
	}
	return list
}

func (r mutations) AcceptFollowRequest(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, r.Relations.AcceptFollow)
}

func (r mutations) DeclineFollowRequest(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, r.Relations.DeclineFollow)
}

func (r viewerFields) FollowRequests(ctx context.Context, obj *model.Viewer, direction model.FriendRequestDirection, _ *int32, _ *string) (*model.UserConnection, error) {
	audience, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := ownList{side: storage.Inverse, owner: obj.User.UserID, kind: storage.Requested}
	if direction == model.FriendRequestDirectionSent {
		list.side = storage.Forward
	}
	return readUsers(ctx, r.Resolver, list, audience, requestCursors(list.side))
}
