package sqlstore

import (
	"cmp"
	"maps"
	"slices"

	"kith/storage"
)

// A judge decides what becomes of the edges that a transaction is given and of those
// that follow from them, see [storage.EdgeWriter]. It works in memory, on rows that
// have been read under the locks of their owners; [writer.write] writes what it has
// changed.
//
// All four rows that tell what two users are to each other lie on the shard of
// either: for an owner and a peer, following and friend_request from the one to the
// other, follower and friend_request_inbox the other way.
type judge struct {
	ttl storage.Micros // how long a request stays pending

	// inline tells whose rows belong to the transaction besides those that it is given;
	// nil: nobody's. Forward rows are written to the other side there at once.
	inline func(storage.UserID) bool

	rows     map[place]storage.Edge  // as they are by now
	was      map[place]storage.Edge  // those that have been changed, as they were before
	messages map[storage.Pair]string // of requests that are made
	marked   map[storage.Pair]bool   // follows with a mark, where they have been looked up
}

// A place is where a row lies.
type place struct {
	side storage.Side
	pair storage.Pair
}

func (s *Store) newJudge() *judge {
	return &judge{
		ttl:  storage.Micros(s.cfg.RequestTTL.Microseconds()),
		rows: make(map[place]storage.Edge),
		was:  make(map[place]storage.Edge),
	}
}

// row is what lies at a place; type None at time 0 where nothing does.
func (j *judge) row(side storage.Side, pair storage.Pair) (e storage.Edge, exists bool) {
	if e, exists = j.rows[place{side, pair}]; !exists {
		e = storage.Edge{From: pair.From, To: pair.To}
	}
	return e, exists
}

// put changes a row.
func (j *judge) put(side storage.Side, e storage.Edge) {
	at := place{side, e.Pair()}
	if _, changed := j.was[at]; !changed {
		j.was[at] = j.rows[at]
	}
	j.rows[at] = e
}

// turn gives a row another type, at the given time or, where the row is not older,
// just behind it.
func (j *judge) turn(side storage.Side, pair storage.Pair, kind storage.EdgeType, at storage.Micros) storage.Written {
	if old, exists := j.row(side, pair); exists {
		at = max(at, old.UpdateTime+1)
	}
	e := storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: at}
	j.put(side, e)
	return storage.Written{Row: storage.Row{Side: side, Edge: e}}
}

// apply writes an edge where the rule allows it, with what follows from it.
func (j *judge) apply(side storage.Side, e storage.Edge, rule storage.Rule) storage.Applied {
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

// blockedBy tells, on the shard of one user, whether another blocks it.
func (j *judge) blockedBy(user, other storage.UserID) bool {
	e, _ := j.row(storage.Inverse, storage.Pair{From: other, To: user})
	return e.Type == storage.Blocking
}

// blocked tells, on the shard of one user, whether it or another blocks the other one.
func (j *judge) blocked(user, other storage.UserID) bool {
	e, _ := j.row(storage.Forward, storage.Pair{From: user, To: other})
	return e.Type == storage.Blocking || j.blockedBy(user, other)
}

// hasConsequences tells whether forward rows of its owner may follow from an edge.
func hasConsequences(side storage.Side, kind storage.EdgeType) bool {
	switch side {
	case storage.Forward, storage.Inverse:
		return kind == storage.Blocking
	case storage.Inbox:
		return kind == storage.Pending || kind == storage.Accepted || kind == storage.Removed
	}
	return false
}

// consequences writes the forward rows that follow from an edge which has just been
// written: those of its owner towards the other end.
func (j *judge) consequences(side storage.Side, e storage.Edge) (also []storage.Written) {
	if !hasConsequences(side, e.Type) {
		return nil
	}
	pair := storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
	follow, _ := j.row(storage.Forward, pair)
	switch {
	case side != storage.Inbox:
		// However old the follow is and however new: who blocks has the last word here.
		if side == storage.Inverse && follow.Type == storage.Following {
			also = append(also, j.turn(storage.Forward, pair, storage.None, e.UpdateTime))
		}
		return append(also, j.cancel(pair, e.UpdateTime)...)
	case e.Type == storage.Removed:
		if follow.Type == storage.Following && follow.UpdateTime < e.UpdateTime {
			also = append(also, j.turn(storage.Forward, pair, storage.None, e.UpdateTime))
		}
		return also
	case j.blocked(pair.From, pair.To):
		return nil
	case j.meets(pair, e.UpdateTime):
		// The answer comes behind what it answers, see again.
		also = append(also, j.turn(storage.Requests, pair, storage.Accepted, e.UpdateTime+1))
		return append(also, j.follow(pair, e.UpdateTime)...)
	case e.Type == storage.Accepted && follow.UpdateTime < e.UpdateTime:
		// A follow that its owner has ended since stays ended.
		return j.follow(pair, e.UpdateTime)
	}
	return nil
}

// meets tells whether a request of a user is pending when one comes from the other
// side: they accept each other.
func (j *judge) meets(request storage.Pair, at storage.Micros) bool {
	own, _ := j.row(storage.Requests, request)
	return own.Type == storage.Pending && max(at-own.UpdateTime, own.UpdateTime-at) <= j.ttl
}

// cancel ends a request that is pending.
func (j *judge) cancel(request storage.Pair, at storage.Micros) []storage.Written {
	if r, _ := j.row(storage.Requests, request); r.Type != storage.Pending {
		return nil
	}
	return []storage.Written{j.turn(storage.Requests, request, storage.Cancelled, at)}
}

// follow makes one user follow another, unless it does.
func (j *judge) follow(pair storage.Pair, at storage.Micros) []storage.Written {
	if f, _ := j.row(storage.Forward, pair); f.Type == storage.Following {
		return nil
	}
	return []storage.Written{j.turn(storage.Forward, pair, storage.Following, at)}
}

// again tells what followed from an edge that came before, as it is now: whoever
// brought it the first time may have crashed before it carried that on. Of two
// requests that were accepted, the later is the answer to the earlier: told the other
// way as well, carrying them would never end.
func (j *judge) again(side storage.Side, e storage.Edge) (also []storage.Written) {
	if !hasConsequences(side, e.Type) {
		return nil
	}
	pair := storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
	tell := func(side storage.Side, kind storage.EdgeType) bool {
		r, exists := j.row(side, pair)
		if exists = exists && r.Type == kind; exists {
			also = append(also, storage.Written{Row: storage.Row{Side: side, Edge: r}})
		}
		return exists
	}
	switch {
	case side == storage.Forward:
		tell(storage.Requests, storage.Cancelled)
	case side == storage.Inverse:
		tell(storage.Forward, storage.None)
		tell(storage.Requests, storage.Cancelled)
	case e.Type == storage.Removed:
		tell(storage.Forward, storage.None)
	default:
		request, _ := j.row(storage.Requests, pair)
		answered := request.UpdateTime > e.UpdateTime && tell(storage.Requests, storage.Accepted)
		if answered || e.Type == storage.Accepted {
			tell(storage.Forward, storage.Following)
		}
	}
	return also
}

// carry writes forward rows to their other side, with what follows from them there,
// and so on, where the transaction has the locks for it. It returns all forward rows
// that have been written, each once.
func (j *judge) carry(written []storage.Written) []storage.Written {
	if j.inline == nil {
		return written
	}
	for i := 0; i < len(written); i++ {
		side, e := written[i].Side.Replica(), written[i].Edge
		if !j.inline(side.Owner(e.Pair())) {
			continue
		}
		if a := j.apply(side, e, storage.IfNewer); a.Changed {
			written[i].Inverse = true
			written = append(written, a.Also...)
		}
	}
	return lastAtEach(written)
}

// lastAtEach keeps the last row of each place, where the first one was.
func lastAtEach(written []storage.Written) []storage.Written {
	if len(written) < 2 {
		return written
	}
	at := make(map[place]int, len(written))
	kept := written[:0]
	for _, w := range written {
		p := place{w.Side, w.Edge.Pair()}
		if i, seen := at[p]; seen {
			kept[i] = w
			continue
		}
		at[p] = len(kept)
		kept = append(kept, w)
	}
	return kept
}

// changed lists the rows of a table that have been changed, in the order of its key.
func (j *judge) changed(side storage.Side) []storage.Edge {
	var edges []storage.Edge
	for at := range j.was {
		if at.side == side {
			edges = append(edges, j.rows[at])
		}
	}
	compare := byKey(side)
	slices.SortFunc(edges, func(a, b storage.Edge) int { return compare(a.Pair(), b.Pair()) })
	return edges
}

// byKey orders pairs as the side's primary key does.
func byKey(side storage.Side) func(a, b storage.Pair) int {
	return func(a, b storage.Pair) int {
		if c := cmp.Compare(side.Owner(a), side.Owner(b)); c != 0 {
			return c
		}
		return cmp.Compare(side.Peer(a), side.Peer(b))
	}
}

// endedFollows lists the follows that have ended.
func (j *judge) endedFollows() []storage.Pair {
	var ended []storage.Pair
	for at, was := range j.was {
		if at.side == storage.Forward && was.Type == storage.Following && j.rows[at].Type != storage.Following &&
			(j.marked == nil || j.marked[at.pair]) {
			ended = append(ended, at.pair)
		}
	}
	slices.SortFunc(ended, byKey(storage.Forward))
	return ended
}

// countDiff is by how much the counts of a user change, and the last day on which that
// makes the user active.
type countDiff struct {
	following, follower, friend int64
	active                      storage.Day
}

// followed adds what the change of a row makes of the count of followers. A new one makes
// the user active.
func (d *countDiff) followed(by int64, edge storage.Edge) {
	d.follower += by
	if by > 0 {
		d.active = max(d.active, storage.DayOf(edge.UpdateTime))
	}
}

// countDiffs are those of the owners of changed rows, by user.
type countDiffs map[storage.UserID]countDiff

// addTo adds what the changed rows make of the counts.
func (j *judge) addTo(diffs countDiffs) {
	for at, was := range j.was {
		owner := at.side.Owner(at.pair)
		d := diffs[owner] // also without a difference: its version rises
		diff := counted(j.rows[at].Type) - counted(was.Type)
		switch at.side {
		case storage.Forward:
			d.following += diff
			d.friend += j.friends(at.pair)
		case storage.Inverse:
			d.followed(diff, j.rows[at])
			back := storage.Pair{From: at.pair.To, To: at.pair.From}
			if _, seen := j.was[place{storage.Forward, back}]; !seen {
				d.friend += j.friends(back)
			}
		}
		diffs[owner] = d
	}
}

// friends is the difference that the changes make to the friends of From: 1 where it
// and To have come to follow each other, on its shard.
func (j *judge) friends(pair storage.Pair) int64 {
	there := place{storage.Forward, pair}
	back := place{storage.Inverse, storage.Pair{From: pair.To, To: pair.From}}
	before := func(at place) int64 {
		if was, changed := j.was[at]; changed {
			return counted(was.Type)
		}
		return counted(j.rows[at].Type)
	}
	return counted(j.rows[there].Type)*counted(j.rows[back].Type) - before(there)*before(back)
}

// counted is what an edge of a type adds to its counts.
func counted(t storage.EdgeType) int64 {
	if t == storage.Following {
		return 1
	}
	return 0
}

// owners lists the owners of changed rows, ascending.
func (j *judge) owners() []storage.UserID {
	owners := make(map[storage.UserID]bool)
	for at := range j.was {
		owners[at.side.Owner(at.pair)] = true
	}
	return slices.Sorted(maps.Keys(owners))
}
