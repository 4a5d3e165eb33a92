package packed

import (
	"encoding/binary"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/sqlstore/internal/db"
)

// A short list is kept packed as one value, in packed_short, with the version that its owner's counts had when the rows
// were read. It is read in the statement that reads the counts, and only if they still have that version. So writers
// need not know of it: a follow costs nothing more, and a list that has changed is read from its rows until it is packed
// again.

// formShort is the first byte of a short list: another layout gets another byte.
const formShort = 0xC2

// AppendShort appends the binary form of a list, by ascending peer, with a checksum ([idset.Seal]). It has the tombstones that
// are at least as new as endedSince.
//
//	byte     0xC2
//	uvarint  endedSince
//	uvarint  how many edges of other types there are; each: a byte, the type; uvarint, the peer; uvarint, the time
//	the follows in chunks of 2,048, each: uvarint, the bytes; the chunk, see [idset.AppendChunk]
func AppendShort(side storage.Side, edges []storage.Edge, endedSince storage.Micros) []byte {
	var others []storage.Edge
	follows := make([]storage.Position, 0, len(edges))
	for _, e := range edges {
		if e.Type == storage.Following {
			follows = append(follows, side.Position(e))
		} else {
			others = append(others, e)
		}
	}
	data := binary.AppendUvarint([]byte{formShort}, uint64(endedSince))
	data = binary.AppendUvarint(data, uint64(len(others)))
	for _, e := range others {
		data = binary.AppendUvarint(append(data, byte(e.Type)), uint64(side.Peer(e.Pair())))
		data = binary.AppendUvarint(data, uint64(e.UpdateTime))
	}
	for chunk := range slices.Chunk(follows, idset.ChunkSize) {
		one := idset.AppendChunk(nil, chunk)
		data = append(binary.AppendUvarint(data, uint64(len(one))), one...)
	}
	return idset.Seal(data)
}

// ParseShort returns the edges of a short list by ascending peer, with the tombstones that a query asks for. An error reports that
// it is malformed, has another number of follows than the count, or lacks tombstones that are asked for.
func ParseShort(side storage.Side, q storage.ListQuery, count int64, data []byte) ([]storage.Edge, error) {
	s, err := beginShort(data)
	if err != nil {
		return nil, err
	}
	if q.EndedSince < s.endedSince {
		return nil, fmt.Errorf("it has the tombstones since %d, not since %d", s.endedSince, q.EndedSince)
	}
	edges := make([]storage.Edge, 0, min(max(count, 0), db.MaxForeseen)+int64(min(s.others, db.MaxForeseen)))
	edge := func(kind storage.EdgeType, peer storage.UserID, at storage.Micros) storage.Edge {
		p := side.Pair(q.Owner, peer)
		return storage.Edge{From: p.From, To: p.To, Type: kind, UpdateTime: at}
	}
	s.eachOther(func(kind storage.EdgeType, peer storage.UserID, at storage.Micros) {
		if !kind.HasEnded() || at >= q.EndedSince {
			edges = append(edges, edge(kind, peer, at))
		}
	})
	others := len(edges)
	follows := make([]storage.Position, 0, min(max(count, 0), idset.ChunkSize))
	for chunk := range s.chunks {
		if follows, _, err = idset.ParseChunk(follows[:0], chunk); err != nil {
			return nil, err
		}
		for _, f := range follows {
			edges = append(edges, edge(storage.Following, f.Peer, f.UpdateTime))
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if n := int64(len(edges) - others); n != count {
		return nil, fmt.Errorf("%d follows, where the count is %d", n, count)
	}
	db.SortByPeer(side, edges)
	return edges, nil
}

// ParseShortPeers returns the peers whom a short list follows, or who follow, ascending. An error is as that of [ParseShort].
func ParseShortPeers(count int64, data []byte) ([]storage.UserID, error) {
	s, err := beginShort(data)
	if err != nil {
		return nil, err
	}
	s.eachOther(func(storage.EdgeType, storage.UserID, storage.Micros) {})
	peers := make([]storage.UserID, 0, min(max(count, 0), db.MaxForeseen))
	for chunk := range s.chunks {
		if peers, err = idset.ParsePeers(peers, chunk); err != nil {
			return nil, err
		}
	}
	if s.err == nil && int64(len(peers)) != count {
		s.err = fmt.Errorf("%d follows, where the count is %d", len(peers), count)
	}
	return peers, s.err
}

// shortReader reads a short list from its beginning.
type shortReader struct {
	left       []byte
	endedSince storage.Micros
	others     int
	err        error
}

func beginShort(data []byte) (*shortReader, error) {
	body, err := idset.Unseal(data)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 || body[0] != formShort {
		return nil, fmt.Errorf("%w: not a short list", idset.ErrMalformed)
	}
	s := &shortReader{left: body[1:]}
	s.endedSince = storage.Micros(s.number())
	s.others = int(min(s.number(), uint64(len(s.left)))) // each takes three bytes
	return s, s.err
}

func (s *shortReader) number() uint64 {
	v, n := binary.Uvarint(s.left)
	if n <= 0 {
		s.fail()
		return 0
	}
	s.left = s.left[n:]
	return v
}

func (s *shortReader) fail() {
	s.left = nil
	s.err = fmt.Errorf("%w: a short list is not complete", idset.ErrMalformed)
}

func (s *shortReader) eachOther(found func(kind storage.EdgeType, peer storage.UserID, at storage.Micros)) {
	for range s.others {
		if len(s.left) == 0 {
			s.fail()
			return
		}
		kind := storage.EdgeType(s.left[0])
		s.left = s.left[1:]
		peer, at := s.number(), s.number()
		found(kind, storage.UserID(peer), storage.Micros(at))
	}
}

// chunks yields the chunks. The error is in s.err.
func (s *shortReader) chunks(yield func([]byte) bool) {
	for len(s.left) > 0 {
		n := s.number()
		if n > uint64(len(s.left)) {
			s.fail()
			return
		}
		chunk := s.left[:n]
		if s.left = s.left[n:]; !yield(chunk) {
			return
		}
	}
}
