package resolvers

import (
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

func cursorOf(side storage.Side, e storage.Edge) string {
	return prefetch.Spell(prefetch.Unsealed, listKinds[side], prefetch.PlaceAt(storage.PositionOf(side, e)))
}

var blockCursors = prefetch.Cursors{Kind: cursor.Blocked}

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
	at := storage.PositionOf(side, e)
	return c.Spell(prefetch.Unsealed, int64(at.UpdateTime), int64(at.Peer))
}

// listedEdge is an edge as the list has it, on a side, that it belongs to.
func listedEdge(side storage.Side, e storage.Edge, node *model.User) *model.UserEdge {
	spell := func(c prefetch.Cursors) string { return spelled(c, side, e) }
	edge := &model.UserEdge{Node: node, Since: e.UpdateTime.Time()}
	switch {
	case side == storage.Relations:
		edge.Cursor = spell(relationCursors(side, e.From, e.Post))
	case e.Type == storage.Blocking:
		edge.Cursor = spell(blockCursors)
	default:
		edge.Cursor = cursorOf(side, e)
	}
	return edge
}
