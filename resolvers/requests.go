package resolvers

import (
	"cmp"
	"context"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

func (r mutations) RequestFriend(ctx context.Context, id string, message *string) (*model.RelationshipPayload, error) {
	text, badText := checked(accounts.CheckText, "message", cmp.Or(message, new(string)), 0, storage.MaxMessageLength)
	viewer, other, err := r.actorAndOther(ctx, id, badText)
	if err != nil {
		return nil, err
	}
	o, err := r.Relations.Ask(ctx, loaders.For(ctx).Reader(), viewer, other, *text)
	return r.requestPayload(ctx, model.RequestKindFriend, viewer, other, o, askError(err))
}

var askError = refusals{{storage.ErrLimitReached, apierr.TooManyRequests.Error("you have as many requests pending, or follow as many users, as one may")}}.tell

func (r mutations) RemoveFriend(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeRequest(ctx, model.RequestKindFriend, id, changes{model.RequestKindFriend: r.Relations.Remove})
}

func (r mutations) AcceptRequest(ctx context.Context, kind model.RequestKind, id string) (*model.RelationshipPayload, error) {
	accept := func(ctx context.Context, user, other storage.UserID) (social.Outcome, error) {
		one := r.Relations.Accept(ctx, requestSides[kind][0], user, other)[0]
		return one.Value, one.Err
	}
	return r.changeRequest(ctx, kind, id, changes{kind: accept})
}

func (r mutations) DeclineRequest(ctx context.Context, kind model.RequestKind, id string) (*model.RelationshipPayload, error) {
	return r.changeRequest(ctx, kind, id, changes{model.RequestKindFriend: r.Relations.Decline, model.RequestKindFollow: r.Relations.DeclineFollow})
}

func (r mutations) WithdrawRequest(ctx context.Context, kind model.RequestKind, id string) (*model.RelationshipPayload, error) {
	return r.changeRequest(ctx, kind, id, changes{model.RequestKindFriend: r.Relations.Cancel, model.RequestKindFollow: r.Relations.WithdrawFollow})
}

// changes are how users change requests between them.
type changes map[model.RequestKind]func(ctx context.Context, user, other storage.UserID) (social.Outcome, error)

// changeRequest changes an existing request or friendship.
func (r *Resolver) changeRequest(ctx context.Context, kind model.RequestKind, id string, by changes) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := by[kind](ctx, viewer, other)
	return r.requestPayload(ctx, kind, viewer, other, o, err)
}

// requestPayload reads what the payload selects. If no request to follow has changed, there may never have been one.
func (r *Resolver) requestPayload(ctx context.Context, kind model.RequestKind, viewer, other storage.UserID, o social.Outcome, err error) (*model.RelationshipPayload, error) {
	var requests []model.RequestRow
	if o.Row.Edge.UpdateTime != 0 && (o.Changed || kind == model.RequestKindFriend) {
		requests = []model.RequestRow{{Edge: o.Row.Edge, Kind: kind}}
	}
	return r.relationshipPayload(ctx, viewer, other, o, err, requests...)
}

func (r mutations) AcceptRequests(ctx context.Context, kind model.RequestKind, _ *int32, _ *string) (*model.AcceptRequestsPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	list := r.requestList(viewer, kind, model.RequestDirectionReceived, model.RequestStatePending)
	cursors := requestCursors(list.side, model.RequestStatePending)
	args, err := prefetch.ParsePart(ctx, prefetch.Running(ctx), cursors)
	if err != nil {
		return nil, err
	}
	page, err := r.toChange(ctx, viewer, list, args, cursors)
	if err != nil {
		return nil, err
	}
	var all done
	results, made := make([]storage.Result[storage.Changed], len(page.Rows)), make([][]storage.Row, len(page.Rows))
	for i, o := range r.Relations.Accept(ctx, requestSides[kind][0], viewer, page.Rows...) {
		d := doneBy(ctx, viewer, page.Rows[i], o.Value)
		results[i].Value.Changed, results[i].Err, made[i] = o.Value.Changed, o.Err, d.made
		all.token, all.late, all.stale = append(all.token, d.token...), append(all.late, d.late...), all.stale || d.stale
	}
	r.await(ctx, all, payloadSelection(ctx).readsInverse())
	outcomes, self := r.outcomes(ctx, viewer, "", prefetch.Inputs[storage.UserID]{Good: page.Rows}, nil, results, made)
	return &model.AcceptRequestsPayload{Viewer: self, Outcomes: outcomes, PageInfo: page.Info}, nil
}

// The two users of a request.
var (
	requestFrom = writer(func(row model.RequestRow) storage.UserID { return row.From },
		func(r *model.Request) (storage.UserID, **model.User) { return r.Row.From, &r.From })
	requestTo = writer(func(row model.RequestRow) storage.UserID { return row.To },
		func(r *model.Request) (storage.UserID, **model.User) { return r.Row.To, &r.To })
)

// requestField is the request on one side of the viewer's own relationships.
func requestField(side storage.Side) *prefetch.Inset[storage.Pair, model.Relationship] {
	ask := func(_ context.Context, level *prefetch.Level, f *selections.Field, pairs []storage.Pair) {
		own := storage.Filter(pairs, func(p storage.Pair) bool { return isViewers(level.Access, p) })
		addRequests(level, model.RequestKindFriend, side, seenFrom(side, own), f.Below)
	}
	return prefetch.NewInset(ask, func(ctx context.Context, list []*model.Relationship, aliases []*selections.Field, at prefetch.Paths) {
		e := prefetch.AccessOf(ctx)
		var rows []model.RequestRow
		var index []int
		for i, r := range list {
			if r == nil || !isViewers(e, r.Pair) {
				continue
			}
			row := loaders.Of(e.Loaders, storage.EdgeLookups[side]).Load(side.Pair(r.Pair.From, r.Pair.To))
			if row.Err != nil {
				prefetch.FailAt(ctx, at(i), row.Err)
			}
			if one := (model.RequestRow{Edge: row.Value, Kind: model.RequestKindFriend}); isRequest(one) {
				rows, index = append(rows, one), append(index, i)
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
	func(_ context.Context, level *prefetch.Level, _ *selections.Field, rows []model.RequestRow) {
		pending := storage.Filter(rows, mayHaveMessage)
		level.Ask(loaders.Of(level.Loaders, storage.MessageLookups).Ask(storage.Each(pending, func(row model.RequestRow) storage.Pair { return row.Pair() })))
	},
	func(ctx context.Context, requests []*model.Request, _ []*selections.Field, at prefetch.Paths) {
		messages := loaders.Of(loaders.For(ctx), storage.MessageLookups)
		for i, request := range requests {
			if mayHaveMessage(request.Row) {
				m := messages.Load(request.Row.Pair())
				if m.Err != nil {
					prefetch.FailAt(ctx, at(i), m.Err)
				}
				request.Text = m.Value
			}
		}
	})

// isRequest reports whether a row is that of a request. When one to follow has ended, its row looks as if there had been none.
func isRequest(row model.RequestRow) bool {
	if row.Kind == model.RequestKindFollow {
		return row.Type == storage.Requested
	}
	return row.Type != storage.None
}

// addRequests adds requests that are read on one side. When they have been, what is selected of them is next.
func addRequests(level *prefetch.Level, kind model.RequestKind, side storage.Side, pairs []storage.Pair, on []*selections.Object) {
	if len(pairs) == 0 {
		return
	}
	l := loaders.Of(level.Loaders, storage.EdgeLookups[side])
	level.Ask(l.Ask(pairs))
	level.Afterwards = append(level.Afterwards, func(context.Context) {
		var rows []model.RequestRow
		for _, p := range pairs {
			if row := (model.RequestRow{Edge: l.Load(p).Value, Kind: kind}); isRequest(row) {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			level.Next = append(level.Next, prefetch.RowsOn(rows, on))
		}
	})
}

func askRequestNodes(_ context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object) {
	for _, kind := range model.AllRequestKind {
		ofKind := storage.Filter(ids, func(id nodeID) bool { return id.requestKind() == kind })
		for _, side := range requestSides[kind] {
			addRequests(level, kind, side, requestsOn(level.Access, side, storage.Each(ofKind, nodeID.pair)), on)
		}
	}
}

// requestKind is that of a request, by the prefix of its id.
func (id nodeID) requestKind() model.RequestKind {
	if id.prefix == "wait_" {
		return model.RequestKindFollow
	}
	return model.RequestKindFriend
}

// requestsOn are those of some requests that the viewer sees on a side. Only the two users of a request see it, each
// on its own shard, and not while the other user is hidden.
func requestsOn(e *prefetch.Access, side storage.Side, requests []storage.Pair) []storage.Pair {
	return storage.Filter(requests, func(p storage.Pair) bool {
		return e.Viewer != 0 && side.Owner(p) == e.Viewer && !e.IsAbsent(side.Peer(p))
	})
}

// showRequestNode makes a request, if the viewer sees it. It has been fetched.
func showRequestNode(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node {
	var rows []model.RequestRow
	e, kind := prefetch.AccessOf(ctx), id.requestKind()
	if p := id.pair(); p.From != e.Viewer && p.To != e.Viewer {
		e.Notice(why.Closed, p.From)
	}
	for _, side := range requestSides[kind] {
		for _, p := range requestsOn(e, side, []storage.Pair{id.pair()}) {
			r := loaders.Of(e.Loaders, storage.EdgeLookups[side]).Load(p)
			if r.Err != nil {
				prefetch.FailAt(ctx, at(0), r.Err)
			}
			if row := (model.RequestRow{Edge: r.Value, Kind: kind}); isRequest(row) {
				rows = []model.RequestRow{row}
			}
		}
	}
	return orNil(resolverOf(ctx).requestsOf(ctx, rows, on, at))
}

func (r viewerFields) Requests(ctx context.Context, obj *model.Viewer, kind model.RequestKind, direction model.RequestDirection, state model.RequestState, _ *int32, _ *string) (*model.RequestConnection, error) {
	f := prefetch.Running(ctx)
	var badState error
	if kind == model.RequestKindFollow && state != model.RequestStatePending {
		badState = apierr.InvalidValue.Error("such requests are not kept").In("state")
	}
	list := r.requestList(obj.User.UserID, kind, direction, state)
	cursors := requestCursors(list.side, state)
	args, badPage := prefetch.ParsePart(ctx, f, cursors.If(badState))
	if err := apierr.All(badPage, badState); err != nil {
		return nil, err
	}
	audience, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	page, err := list.page(ctx, loaders.For(ctx).Reader(), audience, args, cursors, prefetch.PageNeedsOf(f))
	if err != nil {
		return nil, err
	}
	prefetch.Explain(ctx, &page)
	rows := storage.Each(page.Made.(*edgesRead).edges, func(e storage.Edge) model.RequestRow { return model.RequestRow{Edge: e, Kind: kind} })
	nodes := make([]*model.Request, len(rows))
	if items := f.Below[0].Items; items != nil && len(nodes) > 0 {
		prefetch.Fetch(ctx, prefetch.RowsOn(rows, items))
		nodes = r.requestsOf(ctx, rows, items, prefetch.ItemPaths(ctx, f))
	}
	c := &model.RequestConnection{}
	c.Complete, c.Total = page.Complete, page.Total
	c.Page = prefetch.PageOf(page.Info, nodes, func(i int) model.RequestEdge { return model.RequestEdge{Cursor: page.Cursors[i], Node: nodes[i]} })
	return c, nil
}

// requestList is the list of a user's requests that are now in a state.
func (r *Resolver) requestList(user storage.UserID, kind model.RequestKind, direction model.RequestDirection, state model.RequestState) ownList {
	sides := requestSides[kind]
	list := ownList{side: sides[0], owner: user, kind: requestStates[state].kind}
	if direction == model.RequestDirectionReceived {
		list.side = sides[1]
	}
	if kind == model.RequestKindFollow {
		list.kind = storage.Requested
		return list
	}
	// Times are rounded, to a minute or so of 90 days, so that caches are asked the same again. About the time when it expires, a request
	// is neither pending nor expired.
	ttl := r.Relations.Rules.Load().RequestTTL
	step := max(1, ttl/100_000)
	expired := r.Relations.Now().Add(-ttl).Truncate(step)
	switch state {
	case model.RequestStatePending:
		list.newerThan = storage.MicrosOf(expired.Add(step))
	case model.RequestStateExpired:
		list.upTo = storage.MicrosOf(expired)
	}
	return list
}
