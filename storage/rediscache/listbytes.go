package rediscache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// A list is one value, for whoever wants it wants all of it. Numbers of fixed length are
// big-endian, so that Lua reads them too.
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
//	peers    in chunks of up to 2,048, each behind its length, see idset.AppendChunk
//	8 bytes  the least time
//	uvarints the times' distances from it
//	uvarint  how many are no follows; then for each its place and type, as uvarints
//	4 bytes  CRC-32C of all from the first byte on
//
// While there is no list, a mark may tell what is known: 'M', 8 bytes with the version that
// a list has to have at least, and behind that the token of who is filling it.
const listHead = 26

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kept is a list as it is kept: with the query that it answers.
type kept struct {
	list    storage.List
	longest int
	ended   storage.Micros
}

func appendList(to []byte, side storage.Side, k kept) []byte {
	to = append(to, 'V')
	to = binary.BigEndian.AppendUint64(to, uint64(k.list.Version))
	if k.list.Long {
		to = append(to, 1)
		to = binary.BigEndian.AppendUint64(to, uint64(k.longest))
		return binary.BigEndian.AppendUint64(to, uint64(k.ended))
	}
	to = append(to, 0)
	to = binary.BigEndian.AppendUint64(to, 0)
	to = binary.BigEndian.AppendUint64(to, uint64(k.ended))
	to = appendEdges(to, side, k.list.Edges)
	return binary.BigEndian.AppendUint32(to, crc32.Checksum(to, castagnoli))
}

func appendEdges(to []byte, side storage.Side, edges []storage.Edge) []byte {
	to = binary.AppendUvarint(to, uint64(len(edges)))
	peers := make([]storage.UserID, len(edges))
	least := storage.Micros(math.MaxInt64)
	others := 0
	for i, e := range edges {
		peers[i] = side.Peer(e.Pair())
		least = min(least, e.UpdateTime)
		if e.Type != storage.Following {
			others++
		}
	}
	var chunk []byte
	for some := range slices.Chunk(peers, idset.ChunkSize) {
		chunk = idset.AppendChunk(chunk[:0], some)
		to = binary.AppendUvarint(to, uint64(len(chunk)))
		to = append(to, chunk...)
	}
	to = binary.BigEndian.AppendUint64(to, uint64(least))
	for _, e := range edges {
		to = binary.AppendUvarint(to, uint64(e.UpdateTime)-uint64(least)) // may wrap, and wraps back
	}
	to = binary.AppendUvarint(to, uint64(others))
	for i, e := range edges {
		if e.Type != storage.Following {
			to = binary.AppendUvarint(to, uint64(i))
			to = binary.AppendUvarint(to, uint64(e.Type))
		}
	}
	return to
}

// parseList reads a value that begins with 'V'.
func parseList(side storage.Side, owner storage.UserID, data string) (kept, error) {
	if len(data) < listHead || data[0] != 'V' {
		return kept{}, errMalformed
	}
	k := kept{
		list:    storage.List{Version: int64(number(data[1:])), Long: data[9] == 1},
		longest: int(number(data[10:])),
		ended:   storage.Micros(number(data[18:])),
	}
	if k.list.Long {
		return k, nil
	}
	body := len(data) - 4
	if body < listHead || crc32.Checksum([]byte(data[:body]), castagnoli) != binary.BigEndian.Uint32([]byte(data[body:])) {
		return kept{}, errMalformed
	}
	k.longest = math.MaxInt
	var err error
	k.list.Edges, err = parseEdges(side, owner, data[listHead:body])
	return k, err
}

func number(data string) uint64 { return binary.BigEndian.Uint64([]byte(data[:8])) }

func parseEdges(side storage.Side, owner storage.UserID, data string) ([]storage.Edge, error) {
	r := reader{left: data}
	n := r.uvarint()
	if n > uint64(len(data)) { // an edge takes a byte at least
		return nil, errMalformed
	}
	peers := make([]storage.UserID, 0, n)
	for left := n; left > 0; {
		before := len(peers)
		var err error
		if peers, err = idset.ParseChunk(peers, []byte(r.text())); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		if read := uint64(len(peers) - before); read <= left {
			left -= read
		} else {
			return nil, errMalformed
		}
	}
	least := r.take(8)
	if least == "" {
		return nil, errMalformed
	}
	edges := make([]storage.Edge, n)
	for i, peer := range peers {
		pair := side.Pair(owner, peer)
		edges[i] = storage.Edge{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: storage.Micros(number(least) + r.uvarint())}
	}
	for range r.uvarint() {
		i, kind := r.uvarint(), r.uvarint()
		if i >= n || r.broken {
			return nil, errMalformed
		}
		edges[i].Type = storage.EdgeType(kind)
	}
	return edges, r.end()
}
