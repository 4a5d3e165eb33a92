package rediscache

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/wire"
)

// A list is one value, because every reader needs all of it. Numbers of fixed length are
// big-endian, so that Lua can read them, too.
//
//	byte     'V'
//	8 bytes  the version of the owner's counts
//	byte     1 where it is known only that the list is longer than …
//	8 bytes  … so much; otherwise 0
//	8 bytes  tombstones are in it from that time on
//
// and unless it is too long, the edges by ascending peer:
//
//	uvarint  how many
//	chunks   of up to 2,048 peers and times, see idset.AppendChunk
//	uvarint  how many are no follows; then for each its index and type, as uvarints
//	4 bytes  checksum of all from the first byte on, see idset.Seal
//
// If there is no list, a mark may say what is known: 'M', 8 bytes with the lowest version that a
// list must have, and then the token of the look-up that is filling it.
const listHead = 26

// listBytes is the value of a list, as it was read for a query.
func listBytes(side storage.Side, l storage.List, q storage.ListQuery) []byte {
	long, bound := byte(0), 0
	if l.Long {
		long, bound = 1, q.Longest
	}
	to := append(make([]byte, 0, listHead+8*len(l.Edges)), 'V')
	to = append(binary.BigEndian.AppendUint64(to, uint64(l.Version)), long)
	to = binary.BigEndian.AppendUint64(to, uint64(bound))
	to = binary.BigEndian.AppendUint64(to, uint64(q.EndedSince))
	if l.Long {
		return to
	}
	return idset.Seal(appendEdges(to, side, l.Edges))
}

func appendEdges(to []byte, side storage.Side, edges []storage.Edge) []byte {
	to = binary.AppendUvarint(to, uint64(len(edges)))
	positions := make([]storage.Position, 0, min(len(edges), idset.ChunkSize))
	var others []byte
	found := 0
	for i, e := range edges {
		positions = append(positions, storage.Position{UpdateTime: e.UpdateTime, Peer: side.Peer(e.Pair())})
		if e.Type != storage.Following {
			others = binary.AppendUvarint(others, uint64(i))
			others = binary.AppendUvarint(others, uint64(e.Type))
			found++
		}
		if len(positions) == idset.ChunkSize || i == len(edges)-1 {
			to = idset.AppendChunk(to, positions)
			positions = positions[:0]
		}
	}
	to = binary.AppendUvarint(to, uint64(found))
	return append(to, others...)
}

// parseList reads a value that begins with 'V'.
func parseList(side storage.Side, owner storage.UserID, data string) (storage.List, error) {
	if len(data) < listHead || data[0] != 'V' {
		return storage.List{}, errMalformed
	}
	l := storage.List{Version: int64(binary.BigEndian.Uint64([]byte(data[1:9]))), Long: data[9] == 1}
	if l.Long {
		return l, nil
	}
	body, err := idset.Unseal([]byte(data))
	if err != nil || len(body) < listHead {
		return storage.List{}, errMalformed
	}
	l.Edges, err = parseEdges(side, owner, body[listHead:])
	return l, err
}

func parseEdges(side storage.Side, owner storage.UserID, data []byte) ([]storage.Edge, error) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return nil, errMalformed
	}
	data = data[size:]
	edges := make([]storage.Edge, 0, min(n, uint64(len(data)))) // few bytes rarely hold more
	positions := make([]storage.Position, 0, min(n, idset.ChunkSize))
	for uint64(len(edges)) < n {
		var err error
		if positions, data, err = idset.ParseChunk(positions[:0], data); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		for _, at := range positions {
			pair := side.Pair(owner, at.Peer)
			edges = append(edges, storage.Edge{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: at.UpdateTime})
		}
	}
	if uint64(len(edges)) > n {
		return nil, errMalformed
	}
	r := wire.NewDecoder(string(data))
	for range r.Uvarint() {
		i, kind := r.Uvarint(), r.Uvarint()
		if i >= n || !r.OK() {
			return nil, errMalformed
		}
		edges[i].Type = storage.EdgeType(kind)
	}
	return edges, r.End()
}

// A user is a hash:
//
//	v  the version of user_counts, as decimal text
//	p  the profile, see [wire.AppendProfile]; absent while only the version is known
//	c  the counts: following, follower, friend, posts, favorites, favorited as varints
//	l  the token of who is filling it
//
// p, c and v are of one moment. A user that does not exist is kept, too, with version 0.

var errMalformed = wire.ErrMalformed

// parseUser reads the fields of a user's hash.
func parseUser(id storage.UserID, profile, version, counts string) (storage.Profile, error) {
	n, err := strconv.ParseInt(version, 10, 64)
	p, malformed := wire.ParseProfile(id, profile, counts, n)
	if malformed != nil || err != nil && p.Counted {
		return storage.Profile{}, errMalformed
	}
	return p, nil
}
