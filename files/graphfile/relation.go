package graphfile

import (
	"bytes"
	"fmt"
	"slices"

	"kith/storage"
)

// Relation is what the lines of an edge list mean: a type of the rows of a forward table.
type Relation string

// The relations.
const (
	Follows Relation = "following"
	Blocks  Relation = "blocking"
	Waiting Relation = "follow_request"          // a follow that waits for the approval of To
	Ended   Relation = "ended"                   // a follow, a request for one, or a block that has ended
	Denied  Relation = "declined_follow_request" // of a user who is locked, and has declined it

	Requests  Relation = "friend_request" // for friendship, pending
	Accepted  Relation = "accepted_request"
	Declined  Relation = "declined_request"
	Cancelled Relation = "cancelled_request"
	Removed   Relation = "removed_request" // From has ended the friendship
	NoRequest Relation = "ended_request"   // of a user who has been deleted
)

// relations are all of them, in the order in which an import reads them: so that nothing follows
// from a row but what is in the files. Blocks go ahead of follows, which they forbid; all follows go
// ahead of requests, which would make or end some that are missing; pending requests come last,
// because an old accepted one would accept one that is pending in return.
var relations = []relationOfType{
	{Blocks, storage.Forward, storage.Blocking},
	{Follows, storage.Forward, storage.Following},
	{Waiting, storage.Forward, storage.Requested},
	{Ended, storage.Forward, storage.None},
	{Denied, storage.Forward, storage.Denied},
	{NoRequest, storage.Requests, storage.None},
	{Declined, storage.Requests, storage.Declined},
	{Cancelled, storage.Requests, storage.Cancelled},
	{Removed, storage.Requests, storage.Removed},
	{Accepted, storage.Requests, storage.Accepted},
	{Requests, storage.Requests, storage.Pending},
}

type relationOfType struct {
	Relation
	side storage.Side
	kind storage.EdgeType
}

// Relations are all of them, in the order in which an import reads them.
func Relations() []Relation {
	return storage.Each(relations, func(r relationOfType) Relation { return r.Relation })
}

// RelationOf is the relation of the rows of one type of a forward table; false for a damaged row.
func RelationOf(side storage.Side, kind storage.EdgeType) (Relation, bool) {
	i := slices.IndexFunc(relations, func(r relationOfType) bool { return r.side == side && r.kind == kind })
	if i < 0 {
		return "", false
	}
	return relations[i].Relation, true
}

// Rank is the place of a relation in [Relations], −1 for an unknown one.
func (r Relation) Rank() int {
	return slices.IndexFunc(relations, func(known relationOfType) bool { return known.Relation == r })
}

// Row is the forward table and the type of the rows that a relation's lines become.
func (r Relation) Row() (storage.Side, storage.EdgeType, error) {
	i := r.Rank()
	if i < 0 {
		return 0, 0, fmt.Errorf("there is no relation %q: it is one of %q", string(r), Relations())
	}
	return relations[i].side, relations[i].kind, nil
}

// IsPast reports whether the lines are only of what is over. It may name users who have been deleted.
func (r Relation) IsPast() bool {
	switch r {
	case Follows, Blocks, Waiting, Requests, Accepted:
		return false
	}
	return true
}

var headLine = []byte("# relation: ")

// AppendHead appends the first line of an edge list that says itself what its lines mean.
func AppendHead(text []byte, r Relation) []byte {
	return append(append(append(text, headLine...), r...), '\n')
}

// ParseHead reads the first line of an edge list. It returns "" for one that does not say what the
// lines mean. The relation may be unknown.
func ParseHead(line []byte) Relation {
	name, ok := bytes.CutPrefix(bytes.TrimSpace(line), headLine)
	if !ok {
		return ""
	}
	return Relation(bytes.TrimSpace(name))
}
