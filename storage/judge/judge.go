// Package judge holds the rules of edges: what a change may do, and its consequences on the shard
// on which it is made, see [storage.EdgeWriter].
//
// It is pure. An engine reads the rows that decide under locks, passes them to a [Judge], asks it,
// and writes the rows and counts that have changed.
package judge

import (
	"maps"
	"slices"
	"time"

	"kith/storage"
)

// A Judge decides the outcome for the edges of one transaction. It works on rows that were read
// under the locks of their owners.
//
// Four rows hold all that two users are to each other, and the shard of either user has them: for
// an owner and a peer, following and friend_request from the owner to the peer, follower and
// friend_request_inbox from the peer to the owner.
type Judge struct {
	// Inline reports the users whose rows belong to the transaction besides those of its owners; nil:
	// none. The judge writes forward rows to the other side at once if Inline says so.
	Inline func(storage.UserID) bool

	// Messages are those of requests that have been made.
	Messages map[storage.Pair]string

	// Details are those of relations, as they are or are to be.
	Details map[storage.Pair]storage.Detail

	// Posts are those of favorites, if they exist, and whether they have not been deleted.
	Posts map[storage.PostID]bool

	// Marked are the follows that have a mark; nil: they have not been looked up.
	Marked map[storage.Pair]bool

	ttl  storage.Micros          // how long a request stays pending
	rows map[rowKey]storage.Edge // as they are now
	was  map[rowKey]storage.Edge // the changed rows as they were before

	acted map[storage.UserID]storage.Day // who has changed something
}

// A rowKey names a row.
type rowKey struct {
	side storage.Side
	pair storage.Pair
}

// New makes a judge that knows no rows. Two requests that are further apart than ttl do not accept
// each other.
func New(ttl time.Duration) *Judge {
	return &Judge{
		ttl:  storage.Micros(ttl.Microseconds()),
		rows: make(map[rowKey]storage.Edge),
		was:  make(map[rowKey]storage.Edge),

		acted: make(map[storage.UserID]storage.Day),
	}
}

// Know records a row as it was read. Rows that are not recorded do not exist.
func (j *Judge) Know(side storage.Side, e storage.Edge) { j.rows[rowKey{side, e.Pair()}] = e }

// row returns the row of a key, or one of type None at time 0 if there is none.
func (j *Judge) row(side storage.Side, pair storage.Pair) (e storage.Edge, exists bool) {
	if e, exists = j.rows[rowKey{side, pair}]; !exists {
		e = pair.Edge(storage.None, 0)
	}
	return e, exists
}

// put changes a row.
func (j *Judge) put(side storage.Side, e storage.Edge) {
	at := rowKey{side, e.Pair()}
	if _, changed := j.was[at]; !changed {
		j.was[at] = j.rows[at]
	}
	j.rows[at] = e
}

// turn changes a row's type at the given time or, if the row is not older than that, at the row's
// time plus 1.
func (j *Judge) turn(side storage.Side, pair storage.Pair, kind storage.EdgeType, at storage.Micros) storage.Written {
	if old, exists := j.row(side, pair); exists {
		at = max(at, old.UpdateTime+1)
	}
	e := pair.Edge(kind, at)
	j.put(side, e)
	return storage.Written{Row: storage.Row{Side: side, Edge: e}}
}

// Apply writes an edge if the rule allows it, with what follows from it.
func (j *Judge) Apply(side storage.Side, e storage.Edge, rule storage.Rule) storage.Changed {
	old, exists := j.row(side, e.Pair())
	switch {
	case exists && (rule == storage.IfAbsent || e.UpdateTime <= old.UpdateTime):
		return storage.Changed{Row: old, Also: j.again(side, e)}
	case side == storage.Forward && (e.Type == storage.Following || e.Type == storage.Requested) && j.blockedBy(e.From, e.To):
		return storage.Changed{Row: old}
	}
	j.put(side, e)
	return storage.Changed{Row: e, Changed: true, Also: j.consequences(side, e)}
}

// End turns an edge in some tables into tombstones with one time: the given time or, if a row there is
// not older, that row's time plus 1.
func (j *Judge) End(pair storage.Pair, at storage.Micros, sides ...storage.Side) storage.Edge {
	for _, side := range sides {
		if old, exists := j.row(side, pair); exists {
			at = max(at, old.UpdateTime+1)
		}
	}
	e := pair.Edge(storage.None, at)
	for _, side := range sides {
		j.put(side, e)
	}
	return e
}

// Now is a row as it is now, of type None at time 0 if there is none.
func (j *Judge) Now(side storage.Side, pair storage.Pair) storage.Edge {
	e, _ := j.row(side, pair)
	return e
}

// Changed lists the changed rows of a table, in the order of its key.
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
