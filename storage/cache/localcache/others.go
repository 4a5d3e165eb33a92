package localcache

import (
	"cmp"
	"slices"

	"kith/storage"
)

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
