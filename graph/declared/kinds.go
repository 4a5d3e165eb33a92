package declared

import (
	"time"

	"kith/storage"
)

// A Kind is a declared kind of relations. Its edges are rows of `relation` and `relation_inbox`, which are propagated, counted, cached,
// compared, moved and exported like those of every kind: what differs is said here.
type Kind struct {
	Number int64  // in the column `kind`; never used again for another kind
	Name   string // [a-z][A-Za-z0-9]{0,39}, as in a file of declarations
	To     string // what it leads to: "" for users, or the name of a type of the product, see [storage.Foreign]

	Max   int64 // how many edges may leave a user
	Peace bool  // there is no new edge while one of its two ends blocks the other, and it is not seen then
	Timed bool  // it may have an end

	// Its edges are seen by the user whom they leave.
	Public   bool // and by everybody, without users who are hidden from the viewer
	BothEnds bool // and by the user whom they enter

	// Lasts is how long an edge stands: it gets its end from when it was last made. 0: until it is ended, or until the end that it is given.
	Lasts time.Duration
	// KeepsNewest says that an edge beyond Max ends the oldest ones, a hundredth of them at a time. Otherwise it is refused.
	KeepsNewest bool

	// Excludes is the number of the kind of which a user has no edge to the same end: to make or to end an edge ends that one. 0: none.
	Excludes int64
}

// Kinds that Kith itself has. A mark is no edge of a kind: it is a part of a follow, ends in the follow's transaction and is read with it. Products declare theirs from 100 on.
var (
	// Mutes hides a user's posts, what it does, and the user from suggestions and searches.
	Mutes = Kind{Number: 1, Name: "mutes", Max: 1000, Timed: true, Excludes: 2}
	// PostMutes hides only a user's posts.
	PostMutes = Kind{Number: 2, Name: "postMutes", Max: 1000, Timed: true, Excludes: 1}

	// Dismissals keeps users out of a user's suggestions.
	Dismissals = Kind{Number: 3, Name: "dismissals", Max: 5000, Lasts: 180 * 24 * time.Hour, KeepsNewest: true}

	// Acceptances lead from a locked user to those whose requests to follow it has accepted, who are told of it: their follows are like others.
	Acceptances = Kind{Number: 4, Name: "acceptances", Max: 5000, Lasts: 90 * 24 * time.Hour, KeepsNewest: true}
)

// End is the other end of an edge of the kind, from an id as clients write it.
func (k Kind) End(id int64) storage.UserID {
	if k.To != "" {
		return storage.Foreign(id)
	}
	return storage.UserID(id)
}

// EndID is what clients call the other end.
func (k Kind) EndID(end storage.UserID) int64 {
	if k.To != "" {
		return end.ForeignID()
	}
	return int64(end)
}

// Pair names the edge of the kind from a user.
func (k Kind) Pair(from, to storage.UserID) storage.Pair {
	return storage.Pair{From: from, To: to, Item: k.Number}
}

// MaxMembers is how many users may be on a list.
const MaxMembers = 5000

// Members is the kind of relations that lead from a list's owner to its members.
func Members(of storage.ListID) Kind {
	return Kind{Number: of.Kind(), Name: "list", Max: MaxMembers, Peace: true}
}
