package idset

import (
	"encoding/binary"
	"math"
	"slices"

	"kith/storage"
)

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
