package idset

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"kith/storage"
)

// formChunk is the first byte of a chunk: another layout gets another byte.
const formChunk = 0xC1

// ChunkSize is the greatest number of positions in a chunk.
const ChunkSize = 2048

// AppendChunk appends the binary form of 1 to [ChunkSize] positions, by ascending peer, each peer
// positive and once: 6 bytes each for dense ids and times within some days. It has no checksum, see
// [Seal]. O(n).
//
//	byte     0xC1
//	uvarint  n
//	byte     m, how many makers of ids there are, 0 … 16; then m × 2 bytes, see makers
//	uvarint  the first id, shortened
//	8 bytes  the least time, big-endian
//	packs of 128, see appendPack: how far each shortened id lies behind the least that it can
//	         be, 0 for the first; then how much later each time is than the least
func AppendChunk(to []byte, positions []storage.Position) []byte {
	if len(positions) == 0 || len(positions) > ChunkSize {
		panic(fmt.Sprintf("idset: a chunk of %d positions", len(positions)))
	}
	m := makersOf(positions)
	next := m.shorten(positions[0].Peer)
	least := positions[0].UpdateTime
	for _, p := range positions {
		least = min(least, p.UpdateTime)
	}
	to = append(to, formChunk)
	to = binary.AppendUvarint(to, uint64(len(positions)))
	to = m.append(to)
	to = binary.AppendUvarint(to, next)
	to = binary.BigEndian.AppendUint64(to, uint64(least))
	var ids, times [packSize]uint64
	for len(positions) > 0 {
		n := min(packSize, len(positions))
		for i, p := range positions[:n] {
			short := m.shorten(p.Peer)
			ids[i], next = short-next, short+1
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
		for i, short := range ids {
			all = append(all, storage.Position{UpdateTime: storage.Micros(c.least + times[i]), Peer: c.makers.restore(short)})
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
		for _, short := range ids {
			all = append(all, c.makers.restore(short))
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
	makers makers
	n      int    // positions still to be read
	next   uint64 // the least that the next shortened id can be
	least  uint64 // time
	short  [packSize]uint64
}

// begin reads what comes before the packs.
func (c *chunkDecoder) begin(data []byte) {
	c.scanner.left = data
	if form := c.byte(); form != formChunk {
		c.fail("it begins with %#x", form)
	}
	c.n = int(c.number(ChunkSize))
	c.makers = readMakers(&c.scanner)
	c.next = c.number(c.makers.most())
	c.least = c.fixed()
	if c.n == 0 || c.makers.restore(c.next) == 0 {
		c.fail("no ids, or id 0")
	}
}

// ids reads the shortened ids of the next pack: none after the last, or after an error.
func (c *chunkDecoder) ids() []uint64 {
	if c.err != nil {
		return nil
	}
	ids := c.short[:min(packSize, c.n)]
	c.n -= len(ids)
	if len(ids) > 0 {
		c.unpack(ids)
	}
	most := c.makers.most()
	for i, distance := range ids {
		if c.next > most || distance > most-c.next { // and so cannot overflow either
			c.fail("an id is too great")
			return nil
		}
		ids[i] = c.next + distance
		c.next = ids[i] + 1
	}
	return ids
}

// makers shortens ids made by time. The low bits of such an id are the id of the machine that made
// it, and there are few machines. So an id is written as its upper bits times the number of
// machines, plus the index of its machine. That keeps the order, and turns 2 bytes of an id into
// one or a few bits. Ids made in another way are written as they are.
type makers struct {
	low []uint16 // ascending; empty: ids are written as they are
}

const (
	makerBits = 16
	maxMakers = 16
)

// makersOf finds the makers, if they are few enough to be worth a table.
func makersOf(positions []storage.Position) makers {
	var m makers
	for _, p := range positions {
		low := uint16(p.Peer)
		at, found := slices.BinarySearch(m.low, low)
		if found {
			continue
		}
		if len(m.low) == maxMakers || len(m.low)*maxMakers >= len(positions) {
			return makers{}
		}
		m.low = slices.Insert(m.low, at, low)
	}
	return m
}

func (m makers) shorten(id storage.UserID) uint64 {
	if len(m.low) == 0 {
		return uint64(id)
	}
	at, _ := slices.BinarySearch(m.low, uint16(id))
	return uint64(id)>>makerBits*uint64(len(m.low)) + uint64(at)
}

// most is the greatest number that shorten can return.
func (m makers) most() uint64 {
	if len(m.low) == 0 {
		return math.MaxInt64
	}
	return (math.MaxInt64>>makerBits+1)*uint64(len(m.low)) - 1
}

// restore is the inverse of shorten, for numbers up to most.
func (m makers) restore(short uint64) storage.UserID {
	n := uint64(len(m.low))
	if n == 0 {
		return storage.UserID(short)
	}
	return storage.UserID(short/n<<makerBits | uint64(m.low[short%n]))
}

func (m makers) append(to []byte) []byte {
	to = append(to, byte(len(m.low)))
	for _, low := range m.low {
		to = binary.LittleEndian.AppendUint16(to, low)
	}
	return to
}

// readMakers reads a table.
func readMakers(s *scanner) makers {
	n := int(s.byte())
	if n > maxMakers {
		s.fail("%d makers of ids", n)
	}
	table := s.bytes(2 * n)
	if s.err != nil {
		return makers{}
	}
	m := makers{low: make([]uint16, n)}
	for i := range m.low {
		m.low[i] = binary.LittleEndian.Uint16(table[2*i:])
		if i > 0 && m.low[i] <= m.low[i-1] {
			s.fail("makers of ids are out of order")
		}
	}
	return m
}
