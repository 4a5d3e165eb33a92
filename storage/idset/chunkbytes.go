package idset

import (
	"encoding/binary"
	"fmt"

	"kith/storage"
)

// AppendChunk appends the binary form of 1 to [ChunkSize] ids, which are positive and
// ascending, each once: 1 to 8 bytes an id. O(n).
//
//	byte     0xC1
//	uvarint  n
//	byte     m, how many makers of ids there are, 0 … 16; then m × 2 bytes, see makers
//	uvarint  the first id, shortened
//	packs of 128 distances to the one before, less 1: a byte with their width in bits, the bits
//	4 bytes  CRC-32C of all before
func AppendChunk(to []byte, ids []storage.UserID) []byte {
	if len(ids) == 0 || len(ids) > ChunkSize {
		panic(fmt.Sprintf("idset: a chunk of %d ids", len(ids)))
	}
	start := len(to)
	m := makersOf(ids)
	to = append(to, formChunk)
	to = binary.AppendUvarint(to, uint64(len(ids)))
	to = m.append(to)
	last := m.shorten(ids[0])
	to = binary.AppendUvarint(to, last)
	var distances [packSize]uint64
	for ids = ids[1:]; len(ids) > 0; {
		pack := distances[:min(packSize, len(ids))]
		for i := range pack {
			short := m.shorten(ids[i])
			pack[i], last = short-last-1, short
		}
		to = appendPack(to, pack)
		ids = ids[len(pack):]
	}
	return seal(to, start)
}

// ParseChunk appends the ids of a chunk to a slice. The error wraps [ErrMalformed];
// then nothing is appended. O(n).
func ParseChunk(to []storage.UserID, data []byte) ([]storage.UserID, error) {
	s := unseal(data, formChunk)
	n := int(s.number(ChunkSize))
	m := s.makers()
	short := s.number(m.most())
	if s.err == nil && (n == 0 || m.restore(short) == 0) {
		s.fail("no ids, or id 0")
	}
	if s.err != nil {
		return to, s.err
	}
	ids := append(to, m.restore(short))
	var distances [packSize]uint64
	for left := n - 1; left > 0 && s.err == nil; {
		pack := distances[:min(packSize, left)]
		s.unpack(pack)
		for _, distance := range pack {
			if distance >= m.most()-short { // and so no overflow either
				s.fail("an id is too great")
				break
			}
			short += distance + 1
			ids = append(ids, m.restore(short))
		}
		left -= len(pack)
	}
	if err := s.end(); err != nil {
		return to, err
	}
	return ids, nil
}
