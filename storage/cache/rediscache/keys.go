package rediscache

import "kith/storage"

// All keys of a user are in one slot of a cluster, so that one script can change them. The part in
// braces determines the slot.

func (e *epoch) user(id storage.UserID) string { return e.keys + "{" + id.String() + "}:user" }

func (e *epoch) list(side storage.Side, id storage.UserID) string {
	return e.keys + "{" + id.String() + "}:" + side.String()
}
