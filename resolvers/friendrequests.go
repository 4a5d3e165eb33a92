package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
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

func (r viewerFields) FriendRequests(ctx context.Context, obj *model.Viewer, direction model.FriendRequestDirection, state model.FriendRequestState, _ *int32, _ *string) (*model.FriendRequestConnection, error) {
	f := planned(ctx)
	args, err := pageOf(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	list := r.requestList(obj.User.UserID, direction, state)
	cursors := bound{kind: cursor.FriendRequests, to: []int64{int64(list.side), requestStates[state].number}, what: "list"}
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	page, err := list.page(ctx, r.Resolver, loaders.For(ctx).Reader(), audience, args, cursors, pageNeedsOf(f))
	if err != nil {
		return nil, err
	}
	nodes := make([]*model.FriendRequest, len(page.edges))
	if items := f.Below[0].Items; items != nil && len(nodes) > 0 {
		fetch(ctx, wantedRows[storage.Edge]{page.edges, items})
		nodes = r.requestsOf(ctx, page.edges, items, itemPaths(ctx, f))
	}
	return &model.FriendRequestConnection{
		Complete: page.complete, Total: page.total, PageInfo: page.info, Nodes: nodes,
		Edges: edges(len(nodes), func(i int) model.FriendRequestEdge {
			return model.FriendRequestEdge{Cursor: page.cursors[i], Node: nodes[i]}
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
