package rediscache

import "kith/storage"

// All keys of a user lie in one slot of a cluster, so that one script can change them.
// What stands in braces decides on the slot.

func (e *epoch) user(id storage.UserID) string { return e.keys + "{" + id.String() + "}:user" }

func (e *epoch) list(side storage.Side, id storage.UserID) string {
	return e.keys + "{" + id.String() + "}:" + side.String()
}
