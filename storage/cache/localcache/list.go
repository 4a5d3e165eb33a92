package localcache

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
)

// list is everything that one side keeps of an owner: its followings or followers, blocks, and requests for follows. It
// is immutable; see with.
type list struct {
	lifetime
	side    storage.Side
	follows idset.List
	others  others

	// ended are edges that were ended not long ago, by ascending peer: late rows about them must
	// not bring them back. Edges ended before floor are not known.
	ended []endedEdge
	floor storage.Micros

	// version is that of the owner's counts at the moment of the list; 0 if it is not known, as for lists that were changed
	// since. While the counts have this version, the list is right, also beyond its lifetime, but not beyond ends.
	version int64
	ends    time.Time
}

// endedEdge is a tombstone.
type endedEdge struct {
	peer storage.UserID
	at   storage.Micros
	kind storage.EdgeType // None or Denied
}

// endedKept is how far back tombstones are kept, unless they are more than mostEnded, of which the newer half is kept: each one
// more copies all. Rows that come later than that are compared with the table.
const (
	endedKept = storage.Micros(600_000_000)
	mostEnded = 4096
)

// hasEnded reports that the lifetime of a list is over at a time, in microseconds.
func (l *list) hasEnded(now int64) bool { return l.until.UnixMicro() <= now }

// mayBeRight reports that the counts of the owner can tell whether the list has changed.
func (l *list) mayBeRight(now int64) bool { return l.version != 0 && now < l.ends.UnixMicro() }

// expiry is when the list leaves the cache: it stays beyond its lifetime while it may be right.
func (l *list) expiry() time.Time {
	if l.version != 0 {
		return l.ends
	}
	return l.until
}

func (l *list) bytes() int {
	return l.follows.Bytes() + l.others.len()*sizeOf[storage.Edge]() + len(bytesOf(l.ended))
}

// long is what is kept of a list that is too long to be kept when it is first asked for: how often
// it has been asked for since. The count is shared, because it changes and an entry does not.
type long struct {
	lifetime
	asked *atomic.Int32
}

func (l *long) bytes() int { return 64 }

// makeList makes a list of the rows read.
func (c *Cache) makeList(side storage.Side, r storage.List, floor storage.Micros) *list {
	l := &list{side: side, floor: floor, lifetime: c.lives(keep)}
	positions, beside := make([]storage.Position, 0, len(r.Edges)), []storage.Edge(nil)
	for _, e := range r.Edges {
		switch e.Type {
		case storage.Following:
			positions = append(positions, side.Position(e))
		case storage.Blocking, storage.Requested:
			beside = append(beside, e)
		default:
			l.ended = append(l.ended, endedEdge{side.Peer(e.Pair()), e.UpdateTime, e.Type})
		}
	}
	l.others = othersOf(beside)
	l.version, l.ends = r.Version, c.lives(keepUnchanged).until
	l.follows = idset.New(c.directory.Load(), positions)
	return l
}

// verdict is what a row means to a list.
type verdict uint8

const (
	old       verdict = iota // the list already knows the row, or a newer one
	newer                    // the list has to change
	uncertain                // the row is older than the tombstones that the list knows
)

// compareRow compares a row with what the list knows of its pair. It also returns the edge's position if
// the edge is on the list now.
func (l *list) compareRow(e storage.Edge) (v verdict, there storage.Position, listed bool) {
	peer := l.side.Peer(e.Pair())
	at := l.side.Position(e)
	if l.follows.Peers.Contains(peer) {
		if l.follows.Order.Has(at) {
			return old, at, true // the same row again, which is common
		}
		there, listed = l.follows.Order.Find(peer)
		return compare(e, there.UpdateTime), there, listed
	}
	if part, i, other := l.others.find(l.side, peer); other {
		return compare(e, l.others[part][i].UpdateTime), there, false
	}
	if i, ended := l.end(peer); ended {
		return compare(e, l.ended[i].at), there, false
	}
	if e.UpdateTime < l.floor {
		if e.Type.HasEnded() {
			return old, there, false // the edge may have ended once more since: this end is not remembered
		}
		return uncertain, there, false
	}
	return newer, there, false
}

// compare compares a row with the time of the row that is known. Of two rows of one time the first
// counts, as in the table.
func compare(e storage.Edge, known storage.Micros) verdict {
	if e.UpdateTime > known {
		return newer
	}
	return old
}

func (l *list) end(peer storage.UserID) (int, bool) {
	return slices.BinarySearchFunc(l.ended, peer, func(e endedEdge, id storage.UserID) int { return cmp.Compare(e.peer, id) })
}

// with returns the list after a row has been written that is newer than what the list knows, or
// that was read from the table just now.
func (l *list) with(e storage.Edge, now storage.Micros) *list {
	v, there, listed := l.compareRow(e)
	if v == old {
		return l
	}
	next := *l
	next.version = 0
	peer := l.side.Peer(e.Pair())
	if listed {
		next.follows = next.follows.Remove(there)
	}
	if part, i, other := l.others.find(l.side, peer); other {
		next.others = l.others.without(part, i)
	}
	if i, ended := l.end(peer); ended {
		next.ended = slices.Concat(l.ended[:i], l.ended[i+1:])
	}
	switch e.Type {
	case storage.Following:
		next.follows = next.follows.Insert(l.side.Position(e))
	case storage.Blocking, storage.Requested:
		next.others = next.others.with(l.side, e)
	default:
		i, _ := next.end(peer)
		next.ended = slices.Insert(slices.Clone(next.ended), i, endedEdge{peer, e.UpdateTime, e.Type})
		next.prune(now)
	}
	return &next
}

// prune drops tombstones that are too old to matter, once there are many of them.
func (l *list) prune(now storage.Micros) {
	const many = 64
	if len(l.ended)%many != 0 {
		return
	}
	l.floor = max(l.floor, now-endedKept)
	if n := len(l.ended); n > mostEnded {
		times := storage.Each(l.ended, func(e endedEdge) storage.Micros { return e.at })
		slices.Sort(times)
		l.floor = max(l.floor, times[n-mostEnded/2])
	}
	l.ended = slices.DeleteFunc(l.ended, func(e endedEdge) bool { return e.at < l.floor })
}

// edge returns what the side has on a pair. sure is false if the list is long and all of it would
// have to be searched for the time of the edge.
func (l *list) edge(p storage.Pair) (r storage.Result[storage.Edge], sure bool) {
	peer := l.side.Peer(p)
	if l.follows.Peers.Contains(peer) {
		if l.follows.Order.Len() > shortList {
			return r, false
		}
		at, _ := l.follows.Order.Find(peer)
		r.Value, r.Found = storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: at.UpdateTime}, true
		return r, true
	}
	if part, i, other := l.others.find(l.side, peer); other {
		r.Value, r.Found = l.others[part][i], true
	} else if i, ended := l.end(peer); ended {
		r.Value, r.Found = storage.Edge{From: p.From, To: p.To, Type: l.ended[i].kind, UpdateTime: l.ended[i].at}, true
	}
	return r, true
}

// others are blocks, and requests for follows, by ascending peer: in parts, of which lists share all but one before and after a
// change. Millions may block a user.
type others [][]storage.Edge

const mostInPart = 1024

func othersOf(edges []storage.Edge) others { return slices.Collect(slices.Chunk(edges, mostInPart)) }

func (o others) len() (n int) {
	for _, part := range o {
		n += len(part)
	}
	return n
}

// find returns where the edge of a peer is, or belongs.
func (o others) find(side storage.Side, peer storage.UserID) (part, at int, found bool) {
	if len(o) == 0 {
		return 0, 0, false
	}
	byPeer := func(e storage.Edge, id storage.UserID) int { return cmp.Compare(side.Peer(e.Pair()), id) }
	part, _ = slices.BinarySearchFunc(o, peer, func(p []storage.Edge, id storage.UserID) int { return byPeer(p[len(p)-1], id) })
	part = min(part, len(o)-1)
	at, found = slices.BinarySearchFunc(o[part], peer, byPeer)
	return part, at, found
}

func (o others) with(side storage.Side, e storage.Edge) others {
	if len(o) == 0 {
		return others{{e}}
	}
	part, at, _ := o.find(side, side.Peer(e.Pair()))
	more := slices.Concat(o[part][:at], []storage.Edge{e}, o[part][at:])
	parts := others{more}
	if half := len(more) / 2; len(more) > mostInPart {
		parts = others{more[:half], more[half:]}
	}
	return slices.Concat(o[:part], parts, o[part+1:])
}

func (o others) without(part, at int) others {
	fewer := slices.Concat(o[part][:at], o[part][at+1:])
	return slices.Concat(o[:part], othersOf(fewer), o[part+1:])
}
