package judge

import "kith/storage"

// blockedBy reports, on the shard of one user, whether another blocks it.
func (j *Judge) blockedBy(user, other storage.UserID) bool {
	return j.Now(storage.Inverse, storage.Pair{From: other, To: user}).Type == storage.Blocking
}

// blocked reports, on the shard of one user, whether one of the two blocks the other.
func (j *Judge) blocked(user, other storage.UserID) bool {
	return j.Now(storage.Forward, storage.Pair{From: user, To: other}).Type == storage.Blocking || j.blockedBy(user, other)
}

// HasConsequences reports whether forward rows of its owner may follow from an edge.
func HasConsequences(side storage.Side, kind storage.EdgeType) bool {
	switch side {
	case storage.Forward, storage.Inverse:
		return kind == storage.Blocking
	case storage.Inbox:
		return kind == storage.Pending || kind == storage.Accepted || kind == storage.Removed
	}
	return false
}

// consequences writes the forward rows that follow from an edge that was just written: those of its
// owner towards the other end.
func (j *Judge) consequences(side storage.Side, e storage.Edge) (also []storage.Written) {
	if !HasConsequences(side, e.Type) {
		return nil
	}
	pair := storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
	follow := j.Now(storage.Forward, pair)
	switch {
	case side != storage.Inbox:
		// The block wins over the follow, or the request for one, however old or new that is.
		if side == storage.Inverse && (follow.Type == storage.Following || follow.Type == storage.Requested) {
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
		// An accepted request gets a later time than the request that accepted it, see again.
		also = append(also, j.turn(storage.Requests, pair, storage.Accepted, e.UpdateTime+1))
		return append(also, j.follow(pair, e.UpdateTime)...)
	case e.Type == storage.Accepted && follow.UpdateTime < e.UpdateTime:
		// A follow that its owner has ended since then stays ended.
		return j.follow(pair, e.UpdateTime)
	}
	return nil
}

// meets reports whether a user's request is pending when one comes from the other side: then they
// accept each other.
func (j *Judge) meets(request storage.Pair, at storage.Micros) bool {
	own := j.Now(storage.Requests, request)
	return own.Type == storage.Pending && max(at-own.UpdateTime, own.UpdateTime-at) <= j.ttl
}

// cancel ends a request if it is pending.
func (j *Judge) cancel(request storage.Pair, at storage.Micros) []storage.Written {
	if j.Now(storage.Requests, request).Type != storage.Pending {
		return nil
	}
	return []storage.Written{j.turn(storage.Requests, request, storage.Cancelled, at)}
}

// follow makes one user follow another, unless it already does.
func (j *Judge) follow(pair storage.Pair, at storage.Micros) []storage.Written {
	if j.Now(storage.Forward, pair).Type == storage.Following {
		return nil
	}
	return []storage.Written{j.turn(storage.Forward, pair, storage.Following, at)}
}

// again lists what followed from an edge that came before, as it is now: its first writer may have
// crashed before propagating that. If two requests accepted each other, the later is the answer to
// the earlier, and only the later is listed: if each led to the other, propagation would never end.
func (j *Judge) again(side storage.Side, e storage.Edge) (also []storage.Written) {
	if !HasConsequences(side, e.Type) {
		return nil
	}
	pair := storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
	report := func(side storage.Side, kind storage.EdgeType) bool {
		r, exists := j.row(side, pair)
		if exists = exists && r.Type == kind; exists {
			also = append(also, storage.Written{Row: storage.Row{Side: side, Edge: r}})
		}
		return exists
	}
	switch {
	case side == storage.Forward:
		report(storage.Requests, storage.Cancelled)
	case side == storage.Inverse:
		report(storage.Forward, storage.None)
		report(storage.Requests, storage.Cancelled)
	case e.Type == storage.Removed:
		report(storage.Forward, storage.None)
	default:
		request := j.Now(storage.Requests, pair)
		answered := request.UpdateTime > e.UpdateTime && report(storage.Requests, storage.Accepted)
		if answered || e.Type == storage.Accepted {
			report(storage.Forward, storage.Following)
		}
	}
	return also
}

// propagate writes forward rows to their other side, with what follows from them there, and so on, as
// far as the transaction holds the locks. It returns all forward rows that were written, each once.
func (j *Judge) propagate(written []storage.Written) []storage.Written {
	if j.Inline == nil {
		return written
	}
	for i := 0; i < len(written); i++ {
		side, e := written[i].Side.Replica(), written[i].Edge
		if !j.Inline(side.Owner(e.Pair())) {
			continue
		}
		if a := j.Apply(side, e, storage.IfNewer); a.Changed {
			written[i].Inverse = true
			written = append(written, a.Also...)
		}
	}
	return lastAtEach(written)
}

// lastAtEach keeps the last row of each key, at the index of the first one.
func lastAtEach(written []storage.Written) []storage.Written {
	if len(written) < 2 {
		return written
	}
	at := make(map[rowKey]int, len(written))
	kept := written[:0]
	for _, w := range written {
		p := rowKey{w.Side, w.Edge.Pair()}
		if i, seen := at[p]; seen {
			kept[i] = w
			continue
		}
		at[p] = len(kept)
		kept = append(kept, w)
	}
	return kept
}
