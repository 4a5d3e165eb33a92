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

// requestCursors are those of a user's requests for follows on a side.
func requestCursors(side storage.Side) prefetch.Cursors {
	return prefetch.Cursors{Kind: cursor.FollowRequests, To: []int64{int64(side)}, What: "list"}
}

// relationCursors are those of a user's edges of a declared kind on a side.
func relationCursors(side storage.Side, owner storage.UserID, kind int64) prefetch.Cursors {
	return prefetch.Cursors{Kind: cursor.Edges, To: []int64{int64(owner), kind, int64(side)}, What: "list"}
}

// listedEdge is an edge as the list has it, on a side, that it belongs to.
func listedEdge(side storage.Side, e storage.Edge, node *model.User) *model.UserEdge {
	spell := func(c prefetch.Cursors) string {
		at := storage.PositionOf(side, e)
		return c.Spell(prefetch.Unsealed, int64(at.UpdateTime), int64(at.Peer))
	}
	edge := &model.UserEdge{Node: node, Since: e.UpdateTime.Time()}
	switch {
	case side == storage.Relations:
		edge.Cursor = spell(relationCursors(side, e.From, e.Post))
	case e.Type == storage.Blocking:
		edge.Cursor = spell(blockCursors)
	case e.Type == storage.Requested:
		edge.Cursor = spell(requestCursors(side))
	default:
		edge.Cursor = cursorOf(side, e)
	}
	return edge
}
