package rediscache

import (
	"strconv"

	"kith/storage"
)

// All keys of a user are in one slot of a cluster, so that one script can change them. The part in
// braces determines the slot.

func (e *epoch) user(id storage.UserID) string { return e.keys + "{" + id.String() + "}:user" }

func (e *epoch) post(id storage.PostID) string {
	return e.keys + "{" + id.Author.String() + "}:post:" + strconv.FormatInt(id.Number, 10)
}

// stamp is the key without which no post of an author counts.
func (e *epoch) stamp(author storage.UserID) string {
	return e.keys + "{" + author.String() + "}:posts"
}

func (e *epoch) list(side storage.Side, id storage.UserID) string {
	return e.keys + "{" + id.String() + "}:" + side.String()
}
