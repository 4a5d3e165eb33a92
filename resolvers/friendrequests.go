package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/storage"
)

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

func (r userFields) FriendRequests(ctx context.Context, obj *model.User, direction model.FriendRequestDirection, state model.FriendRequestState, first *int32, after *string) (*model.FriendRequestConnection, error) {
	if !isViewer(ctx, obj.UserID) {
		return nil, nil
	}
	size, text, err := forwardPage(first, after)
	if err != nil {
		return nil, err
	}
	list := r.requestList(obj.UserID, direction, state)
	spell := func(seal *cursor.Sealer, at storage.Position) string {
		return seal.Encode(cursor.FriendRequests, int64(list.side), requestStates[state].number, int64(at.UpdateTime), int64(at.Peer))
	}
	var from storage.Position
	if text != "" {
		if from, err = r.requestPosition(text, list.side, requestStates[state].number); err != nil {
			return nil, err
		}
	}
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	f := planned(ctx)
	n := pageNeedsOf(f)
	c := &model.FriendRequestConnection{Complete: true, PageInfo: &model.PageInfo{}}
	if n.total {
		total, complete, err := list.size(ctx, r.Resolver, audience)
		c.Total, c.Complete = storage.Result[int]{Value: total, Err: err}, complete
	}
	if !n.rows {
		return c, nil
	}
	shown, err := list.page(ctx, r.Resolver, audience, from, size)
	if err != nil {
		return nil, err
	}
	page := make([]item, len(shown.Edges))
	for i, e := range shown.Edges {
		at := storage.PositionOf(list.side, e)
		page[i] = item{user: at.Peer, cursor: spell(unsealed, at)}
	}
	r.fillRequests(ctx, c, f, shown.Edges, page)
	c.Complete = c.Complete && shown.Complete
	c.PageInfo = pageInfoOf(page, shown.More, r.beyond(shown, spell))
	return c, nil
}

// requestList is the list of a user's requests that are now in a state.
func (r *Resolver) requestList(user storage.UserID, direction model.FriendRequestDirection, state model.FriendRequestState) ownList {
	list := ownList{side: storage.Requests, owner: user, kind: requestStates[state].kind}
	if direction == model.FriendRequestDirectionReceived {
		list.side = storage.Inbox
	}
	expired := storage.MicrosOf(r.Relations.Now().Add(-r.Relations.RequestTTL))
	switch state {
	case model.FriendRequestStatePending:
		list.newerThan = expired
	case model.FriendRequestStateExpired:
		list.upTo = expired
	}
	return list
}

// requestPosition reads a cursor of the same direction and state.
func (r *Resolver) requestPosition(text string, side storage.Side, state int64) (storage.Position, error) {
	var ofSide, ofState, at, peer int64
	if err := r.Cursors.Decode(cursor.FriendRequests, text, &ofSide, &ofState, &at, &peer); err != nil {
		return storage.Position{}, err
	}
	if storage.Side(ofSide) != side || ofState != state {
		return storage.Position{}, otherList(text)
	}
	return storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, nil
}

// fillRequests makes the requests of a page and puts them into the connection.
func (r *Resolver) fillRequests(ctx context.Context, c *model.FriendRequestConnection, f *selections.Field, rows []storage.Edge, page []item) {
	requests := make([]*model.FriendRequest, len(rows))
	if items := f.Below[0].Items; items != nil && len(rows) > 0 {
		fetch(ctx, wantedByRequests(rows, items)...)
		requests = r.requestsOf(ctx, rows, items, itemPaths(ctx, f))
	}
	c.Nodes = requests
	c.Edges = make([]*model.FriendRequestEdge, len(rows))
	for i, e := range page {
		c.Edges[i] = &model.FriendRequestEdge{Cursor: e.cursor, Node: requests[i]}
	}
}
