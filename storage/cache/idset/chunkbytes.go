package idset

import (
	"encoding/binary"
	"fmt"
	"math"

	"kith/storage"
)

// formChunk is the first byte of a chunk: another layout gets another byte.
const formChunk = 0xC3

// ChunkSize is the greatest number of positions in a chunk.
const ChunkSize = 2048

// AppendChunk appends the binary form of 1 to [ChunkSize] positions, by ascending peer, each peer
// positive and once: 6 bytes each for dense ids and times within some days. It has no checksum, see
// [Seal]. O(n).
//
//	byte     0xC3
//	uvarint  n
//	uvarint  the first id
//	8 bytes  the least time, big-endian
//	packs of 128, see appendPack: how far each id lies behind the least that it can
//	         be, 0 for the first; then how much later each time is than the least
func AppendChunk(to []byte, positions []storage.Position) []byte {
	if len(positions) == 0 || len(positions) > ChunkSize {
		panic(fmt.Sprintf("idset: a chunk of %d positions", len(positions)))
	}
	next := uint64(positions[0].Peer)
	least := positions[0].UpdateTime
	for _, p := range positions {
		least = min(least, p.UpdateTime)
	}
	to = append(to, formChunk)
	to = binary.AppendUvarint(to, uint64(len(positions)))
	to = binary.AppendUvarint(to, next)
	to = binary.BigEndian.AppendUint64(to, uint64(least))
	var ids, times [packSize]uint64
	for len(positions) > 0 {
		n := min(packSize, len(positions))
		for i, p := range positions[:n] {
			ids[i], next = uint64(p.Peer)-next, uint64(p.Peer)+1
			times[i] = uint64(p.UpdateTime) - uint64(least) // may wrap, and wraps back
		}
		to = appendPack(to, ids[:n])
		to = appendPack(to, times[:n])
		positions = positions[n:]
	}
	return to
}

// ParseChunk appends the positions of a chunk to a slice, and returns what follows the chunk. The
// error wraps [ErrMalformed]; then nothing is appended. O(n).
func ParseChunk(to []storage.Position, data []byte) (all []storage.Position, rest []byte, err error) {
	var c chunkDecoder
	c.begin(data)
	all = to
	var times [packSize]uint64
	for ids := c.ids(); len(ids) > 0; ids = c.ids() {
		c.unpack(times[:len(ids)])
		for i, id := range ids {
			all = append(all, storage.Position{UpdateTime: storage.Micros(c.least + times[i]), Peer: storage.UserID(id)})
		}
	}
	if c.err != nil {
		return to, nil, c.err
	}
	return all, c.left, nil
}

// ParsePeers appends only the peers of a chunk, which must be the end of data. The error wraps
// [ErrMalformed]; then nothing is appended. O(n).
func ParsePeers(to []storage.UserID, data []byte) ([]storage.UserID, error) {
	var c chunkDecoder
	c.begin(data)
	all := to
	var times [packSize]uint64 // they are of no use here
	for ids := c.ids(); len(ids) > 0; ids = c.ids() {
		c.unpack(times[:len(ids)])
		for _, id := range ids {
			all = append(all, storage.UserID(id))
		}
	}
	if err := c.end(); err != nil {
		return to, err
	}
	return all, nil
}

// chunkDecoder decodes a chunk pack by pack.
type chunkDecoder struct {
	scanner
	n      int    // positions still to be read
	next   uint64 // the least that the next id can be
	least  uint64 // time
	values [packSize]uint64
}

// begin reads what comes before the packs.
func (c *chunkDecoder) begin(data []byte) {
	c.scanner.left = data
	if form := c.byte(); form != formChunk {
		c.fail("it begins with %#x", form)
	}
	c.n = int(c.number(ChunkSize))
	c.next = c.number(math.MaxInt64)
	c.least = c.fixed()
	if c.n == 0 || c.next == 0 {
		c.fail("no ids, or id 0")
	}
}

// ids reads the ids of the next pack: none after the last, or after an error.
func (c *chunkDecoder) ids() []uint64 {
	if c.err != nil {
		return nil
	}
	ids := c.values[:min(packSize, c.n)]
	c.n -= len(ids)
	if len(ids) > 0 {
		c.unpack(ids)
	}
	for i, distance := range ids {
		if c.next > math.MaxInt64 || distance > math.MaxInt64-c.next { // and so cannot overflow either
			c.fail("an id is too great")
			return nil
		}
		ids[i] = c.next + distance
		c.next = ids[i] + 1
	}
	return ids
}
