package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

func cursorOf(side storage.Side, e storage.Edge) string {
	return prefetch.Spell(prefetch.Unsealed, listKinds[side], prefetch.PlaceAt(side.Position(e)))
}

var blockCursors = prefetch.Cursors{Kind: cursor.Blocked}

// dismissedCursors are those of the users whom one has dismissed.
func dismissedCursors(viewer storage.UserID) prefetch.Cursors {
	return prefetch.Cursors{Kind: cursor.Dismissed, To: []int64{int64(viewer)}, What: "list"}
}

// requestCursors are those of a user's requests in a state that are on a side.
func requestCursors(side storage.Side, state model.RequestState) prefetch.Cursors {
	return prefetch.Cursors{Kind: cursor.Requests, To: []int64{int64(side), requestStates[state].number}, What: "list"}
}

// relationCursors are those of a user's edges of a declared kind on a side.
func relationCursors(side storage.Side, owner storage.UserID, kind int64) prefetch.Cursors {
	return prefetch.Cursors{Kind: cursor.Edges, To: []int64{int64(owner), kind, int64(side)}, What: "list"}
}

// spelled is the cursor of an edge in a list of edges on a side.
func spelled(c prefetch.Cursors, side storage.Side, e storage.Edge) string {
	at := side.Position(e)
	return c.Spell(prefetch.Unsealed, int64(at.UpdateTime), int64(at.Peer))
}

// listedEdge is an edge as the list has it, on a side, that it belongs to.
func listedEdge(side storage.Side, e storage.Edge, node *model.User) *model.UserEdge {
	spell := func(c prefetch.Cursors) string { return spelled(c, side, e) }
	edge := &model.UserEdge{Node: node, Since: e.UpdateTime.Time()}
	switch {
	case side == storage.Relations && e.Item == declared.Dismissals.Number:
		edge.Cursor = dismissedCursors(e.From).Spell(prefetch.Unsealed, int64(e.To))
	case side == storage.Relations:
		edge.Cursor = spell(relationCursors(side, e.From, e.Item))
	case e.Type == storage.Blocking:
		edge.Cursor = spell(blockCursors)
	default:
		edge.Cursor = cursorOf(side, e)
	}
	return edge
}

// requestStates are the numbers of states in cursors. Clients keep cursors, so new states are
// added at the end. kind is the store's type for each, of friend requests.
var requestStates = map[model.RequestState]struct {
	number int64
	kind   storage.EdgeType
}{
	model.RequestStatePending:   {1, storage.Pending},
	model.RequestStateAccepted:  {2, storage.Accepted},
	model.RequestStateDeclined:  {3, storage.Declined},
	model.RequestStateWithdrawn: {4, storage.Cancelled},
	model.RequestStateRemoved:   {5, storage.Removed},
	model.RequestStateExpired:   {6, storage.Pending},
}

// requestsOf makes requests whose rows are known and whose users have been fetched.
func (r *Resolver) requestsOf(ctx context.Context, rows []model.RequestRow, on []*selections.Object, at prefetch.Paths) []*model.Request {
	if len(rows) == 0 {
		return nil
	}
	now, ttl := r.Relations.Now(), r.Relations.Rules.Load().RequestTTL
	requests := storage.Each(rows, func(row model.RequestRow) *model.Request {
		return &model.Request{Row: row, Now: now, TTL: ttl}
	})
	prefetch.ShowParts(ctx, requests, on, at)
	return requests
}

func mayHaveMessage(row model.RequestRow) bool {
	return row.Kind == model.RequestKindFriend && row.Type == storage.Pending
}
