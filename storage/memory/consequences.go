package memory

import (
	"time"

	"kith/storage"
)

// What follows from an edge lies on the shard that the edge was written to: all four
// rows between an owner and a peer do. So it is judged there, in the same call, and
// told as forward rows, whose other side lies with the peer.
//
// Four rows between the owner o and the peer p: o follows p (Forward), p follows o
// (Inverse), o has asked p (Requests), p has asked o (Inbox).

// follow does what follows from an edge that has been written.
func (w *writer) follow(side storage.Side, edge storage.Edge) []storage.Written {
	s := w.store
	mine := side.Truth().Pair(side.Owner(edge.Pair()), side.Peer(edge.Pair())) // owner → peer
	switch {
	case side == storage.Forward && edge.Type == storage.Blocking:
		return w.turn(storage.Requests, mine, storage.Pending, storage.Cancelled, edge.UpdateTime)

	case side == storage.Inverse && edge.Type == storage.Blocking:
		// Whatever their times: the block is the newest that the peer has said.
		return append(
			w.turn(storage.Forward, mine, storage.Following, storage.None, edge.UpdateTime),
			w.turn(storage.Requests, mine, storage.Pending, storage.Cancelled, edge.UpdateTime)...)

	case side == storage.Inbox && edge.Type == storage.Removed:
		// A follow that is newer than the end of the friendship stays.
		if s.row(storage.Forward, mine).UpdateTime < edge.UpdateTime {
			return w.turn(storage.Forward, mine, storage.Following, storage.None, edge.UpdateTime)
		}

	case side == storage.Inbox && (edge.Type == storage.Pending || edge.Type == storage.Accepted):
		if s.blocked(mine) {
			return nil
		}
		request := s.row(storage.Requests, mine)
		if request.Type == storage.Pending && within(edge.UpdateTime, request.UpdateTime, s.requestTTL) {
			// Both have asked. The answer comes behind what it answers, see again.
			return append(
				w.turn(storage.Requests, mine, storage.Pending, storage.Accepted, edge.UpdateTime+1),
				w.makeFollow(mine, edge.UpdateTime)...)
		}
		// Once: a follow that has been ended since is not made again.
		if edge.Type == storage.Accepted && s.row(storage.Forward, mine).UpdateTime < edge.UpdateTime {
			return w.makeFollow(mine, edge.UpdateTime)
		}
	}
	return nil
}

// again tells what has followed from an edge that came before, as far as it is still
// so: whoever wrote it may have ended before it carried that on.
//
// Two requests that were both accepted are rows of either side that tell of each other.
// Only the one that is behind the other is told, or carrying them would never end.
func (w *writer) again(side storage.Side, edge storage.Edge) []storage.Written {
	mine := side.Truth().Pair(side.Owner(edge.Pair()), side.Peer(edge.Pair()))
	request, follow := w.store.row(storage.Requests, mine), w.store.row(storage.Forward, mine)
	var told []storage.Written
	tell := func(side storage.Side, edge storage.Edge, kind storage.EdgeType) bool {
		if edge.UpdateTime == 0 || edge.Type != kind {
			return false
		}
		told = append(told, storage.Written{Row: storage.Row{Side: side, Edge: edge}})
		return true
	}
	switch {
	case side == storage.Forward && edge.Type == storage.Blocking:
		tell(storage.Requests, request, storage.Cancelled)
	case side == storage.Inverse && edge.Type == storage.Blocking:
		tell(storage.Forward, follow, storage.None)
		tell(storage.Requests, request, storage.Cancelled)
	case side == storage.Inbox && (edge.Type == storage.Pending || edge.Type == storage.Accepted):
		answered := request.UpdateTime > edge.UpdateTime && tell(storage.Requests, request, storage.Accepted)
		if answered || edge.Type == storage.Accepted {
			tell(storage.Forward, follow, storage.Following)
		}
	case side == storage.Inbox && edge.Type == storage.Removed:
		tell(storage.Forward, follow, storage.None)
	}
	return told
}

// turn gives a forward row of one type another type, at a time or later.
func (w *writer) turn(side storage.Side, pair storage.Pair, from, to storage.EdgeType, at storage.Micros) []storage.Written {
	row := w.store.row(side, pair)
	if row.Type != from {
		return nil
	}
	return w.write(side, pair, to, at)
}

// makeFollow makes an owner follow a peer, unless it does.
func (w *writer) makeFollow(pair storage.Pair, at storage.Micros) []storage.Written {
	if w.store.row(storage.Forward, pair).Type == storage.Following {
		return nil
	}
	return w.write(storage.Forward, pair, storage.Following, at)
}

// write writes a forward row at a time, or later where the row there is newer.
func (w *writer) write(side storage.Side, pair storage.Pair, kind storage.EdgeType, at storage.Micros) []storage.Written {
	edge := storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: w.store.timeOf(side, pair, at)}
	w.put(side, edge)
	return []storage.Written{{Row: storage.Row{Side: side, Edge: edge}}}
}

// carry writes the other side of forward rows where it lies in the same database, and
// what follows from that, until nothing follows. It returns all of them.
func (w *writer) carry(rows []storage.Written) []storage.Written {
	var carried []storage.Written
	for _, row := range rows {
		applied := storage.Applied{}
		if w.store.together(row.Edge.From, row.Edge.To) {
			applied = w.apply(row.Side.Replica(), row.Edge, storage.IfNewer)
		}
		row.Inverse = applied.Changed
		carried = append(carried, row)
		if applied.Changed {
			carried = append(carried, w.carry(applied.Also)...)
		}
	}
	return carried
}

// timeOf is a new time for a row: a clock's, or the next behind the row's.
func (s *Store) timeOf(side storage.Side, pair storage.Pair, clock storage.Micros) storage.Micros {
	if old, exists := s.edge(side, pair); exists {
		return max(clock, old.UpdateTime+1)
	}
	return clock
}

// isBlockedBy tells whether the peer blocks the owner, as the owner's shard knows.
func (s *Store) isBlockedBy(owner, peer storage.UserID) bool {
	return s.row(storage.Inverse, storage.Pair{From: peer, To: owner}).Type == storage.Blocking
}

// blocked tells whether one of the two blocks the other, as the shard of From knows.
func (s *Store) blocked(pair storage.Pair) bool {
	return s.row(storage.Forward, pair).Type == storage.Blocking || s.isBlockedBy(pair.From, pair.To)
}

// within tells whether two times lie at most so far apart.
func within(a, b storage.Micros, most time.Duration) bool {
	return max(a-b, b-a) <= storage.Micros(most.Microseconds())
}
