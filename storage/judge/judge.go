// Package judge is the rules of edges: what a change may do, and what follows from it on the
// shard it was made on, see [storage.EdgeWriter].
//
// It is pure. An engine reads the rows that decide while nobody else can change them, tells
// a [Judge] of them, asks it, and writes the rows and counts that have changed.
package judge

import (
	"maps"
	"slices"
	"time"

	"kith/storage"
)

// A Judge decides what becomes of the edges of one transaction. It works on rows that have
// been read under the locks of their owners.
//
// All four rows that tell what two users are to each other lie on the shard of
// either: for an owner and a peer, following and friend_request from the one to the
// other, follower and friend_request_inbox the other way.
type Judge struct {
	// Inline tells whose rows belong to the transaction besides those that it is given;
	// nil: nobody's. Forward rows are written to the other side there at once.
	Inline func(storage.UserID) bool

	// Messages are those of requests that have been made.
	Messages map[storage.Pair]string

	// Marked are the follows that have a mark; nil: nobody has looked them up.
	Marked map[storage.Pair]bool

	ttl  storage.Micros         // how long a request stays pending
	rows map[place]storage.Edge // as they are by now
	was  map[place]storage.Edge // those that have been changed, as they were before
}

// A place is where a row lies.
type place struct {
	side storage.Side
	pair storage.Pair
}

// New makes a judge that knows of no row. Two requests that are further apart than ttl do
// not meet.
func New(ttl time.Duration) *Judge {
	return &Judge{
		ttl:  storage.Micros(ttl.Microseconds()),
		rows: make(map[place]storage.Edge),
		was:  make(map[place]storage.Edge),
	}
}

// Know takes note of a row as it has been read. Rows that nobody tells of do not exist.
func (j *Judge) Know(side storage.Side, e storage.Edge) { j.rows[place{side, e.Pair()}] = e }

// row is what lies at a place; type None at time 0 where nothing does.
func (j *Judge) row(side storage.Side, pair storage.Pair) (e storage.Edge, exists bool) {
	if e, exists = j.rows[place{side, pair}]; !exists {
		e = storage.Edge{From: pair.From, To: pair.To}
	}
	return e, exists
}

// put changes a row.
func (j *Judge) put(side storage.Side, e storage.Edge) {
	at := place{side, e.Pair()}
	if _, changed := j.was[at]; !changed {
		j.was[at] = j.rows[at]
	}
	j.rows[at] = e
}

// turn gives a row another type, at the given time or, where the row is not older,
// just behind it.
func (j *Judge) turn(side storage.Side, pair storage.Pair, kind storage.EdgeType, at storage.Micros) storage.Written {
	if old, exists := j.row(side, pair); exists {
		at = max(at, old.UpdateTime+1)
	}
	e := storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: at}
	j.put(side, e)
	return storage.Written{Row: storage.Row{Side: side, Edge: e}}
}

// Apply writes an edge where the rule allows it, with what follows from it.
func (j *Judge) Apply(side storage.Side, e storage.Edge, rule storage.Rule) storage.Applied {
	old, exists := j.row(side, e.Pair())
	switch {
	case exists && (rule == storage.IfAbsent || e.UpdateTime <= old.UpdateTime):
		return storage.Applied{Row: old, Also: j.again(side, e)}
	case side == storage.Forward && e.Type == storage.Following && j.blockedBy(e.From, e.To):
		return storage.Applied{Row: old}
	}
	j.put(side, e)
	return storage.Applied{Row: e, Changed: true, Also: j.consequences(side, e)}
}

// Changed lists the rows of a table that have been changed, in the order of its key.
func (j *Judge) Changed(side storage.Side) []storage.Edge {
	var edges []storage.Edge
	for at := range j.was {
		if at.side == side {
			edges = append(edges, j.rows[at])
		}
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) })
	return edges
}

// Owners lists the owners of changed rows, ascending.
func (j *Judge) Owners() []storage.UserID {
	owners := make(map[storage.UserID]bool)
	for at := range j.was {
		owners[at.side.Owner(at.pair)] = true
	}
	return slices.Sorted(maps.Keys(owners))
}
