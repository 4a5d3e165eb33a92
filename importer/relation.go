package importer

import (
	"fmt"

	"kith/storage"
)

// Relation is what the lines of an edge list mean.
type Relation string

// The relations.
const (
	Follows  Relation = "following"
	Blocks   Relation = "blocking"
	Requests Relation = "friend_request" // for friendship, pending
)

// Relations are all of them, the default first.
var Relations = []Relation{Follows, Blocks, Requests}

// relation is what a line becomes: a row of a forward table with a type.
type relation struct {
	side storage.Side
	kind storage.EdgeType
}

func tableOf(r Relation) (relation, error) {
	switch r {
	case "", Follows:
		return relation{storage.Forward, storage.Following}, nil
	case Blocks:
		return relation{storage.Forward, storage.Blocking}, nil
	case Requests:
		return relation{storage.Requests, storage.Pending}, nil
	}
	return relation{}, fmt.Errorf("there is no relation %q: it is one of %q", string(r), Relations)
}
