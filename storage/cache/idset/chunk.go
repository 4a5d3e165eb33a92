package idset

import (
	"math/bits"
	"slices"
	"sync"
)

// Forms of a chunk. Up to maxSlots users are a list of 2 bytes each, more are a bitmap of 8 kB. A
// bitmap is worth the space of four such lists: two bitmaps are intersected in 0.1 to 0.4 µs, two
// lists of 1,024 in 2 µs (see the results). The two limits differ, so that a chunk whose length
// moves up and down at the limit does not change its form each time.
const (
	maxSlots = 1024
	minBits  = maxSlots * 3 / 4
)

const chunkWords = pageSlots / 64

// chunk is those users of a set who are on one page of the directory, in one of two forms. It is
// immutable, and versions of a set share it.
type chunk struct {
	page  uint32
	n     int32
	bits  *[chunkWords]uint64 // by slot, or nil
	slots []uint16            // ascending, if bits is nil
}

// chunkOf makes a chunk of ascending ordinals of one page.
func chunkOf(ordinals []ordinal) *chunk {
	c := &chunk{page: ordinals[0].page(), n: int32(len(ordinals))}
	if len(ordinals) > maxSlots {
		c.bits = new([chunkWords]uint64)
		for _, o := range ordinals {
			s := o.slot()
			c.bits[s/64] |= 1 << (s % 64)
		}
		return c
	}
	c.slots = make([]uint16, len(ordinals))
	for i, o := range ordinals {
		c.slots[i] = o.slot()
	}
	return c
}

// with returns the chunk with a slot added that it does not contain. O(its size), 8 kB.
func (c *chunk) with(slot uint16) *chunk {
	next := &chunk{page: c.page, n: c.n + 1}
	switch {
	case c.bits == nil && c.n < maxSlots:
		at, _ := slices.BinarySearch(c.slots, slot)
		next.slots = inserted(c.slots, at, slot)
	default:
		next.bits = c.bitmap()
		next.bits[slot/64] |= 1 << (slot % 64)
	}
	return next
}

// without returns the chunk without a slot that it contains.
func (c *chunk) without(slot uint16) *chunk {
	next := &chunk{page: c.page, n: c.n - 1}
	if c.bits == nil {
		at, _ := slices.BinarySearch(c.slots, slot)
		next.slots = slices.Concat(c.slots[:at], c.slots[at+1:])
		return next
	}
	next.bits = c.bitmap()
	next.bits[slot/64] &^= 1 << (slot % 64)
	if next.n < minBits {
		next.slots, next.bits = next.appendSlots(make([]uint16, 0, next.n)), nil
	}
	return next
}

// bitmap is a new bitmap of the chunk.
func (c *chunk) bitmap() *[chunkWords]uint64 {
	b := new([chunkWords]uint64)
	if c.bits != nil {
		*b = *c.bits
		return b
	}
	for _, s := range c.slots {
		b[s/64] |= 1 << (s % 64)
	}
	return b
}

// appendSlots appends the slots, ascending.
func (c *chunk) appendSlots(to []uint16) []uint16 {
	if c.bits == nil {
		return append(to, c.slots...)
	}
	for w, word := range c.bits {
		for ; word != 0; word &= word - 1 {
			to = append(to, uint16(w*64+bits.TrailingZeros64(word)))
		}
	}
	return to
}

// bytes is the chunk's size in memory.
func (c *chunk) bytes() int {
	const header = 8 + 40 // the set's pointer to it; the chunk itself
	if c.bits != nil {
		return header + chunkWords*8
	}
	return header + 2*len(c.slots)
}

// bit is 1 if the chunk contains a slot, else 0.
func (c *chunk) bit(slot uint16) int {
	if c.bits != nil {
		return int(c.bits[slot/64] >> (slot % 64) & 1)
	}
	if _, found := slices.BinarySearch(c.slots, slot); found {
		return 1
	}
	return 0
}

// pair is two chunks of a page that are being intersected: one as a bitmap, and the other one. That needs no branch on their contents,
// which a processor could not predict, and so it is twice as fast as a merge.
type pair struct {
	in    *[chunkWords]uint64
	other *chunk
}

// count counts the slots that both chunks have.
func (p pair) count() int {
	if p.other.bits != nil {
		return commonBits(p.in, p.other.bits)
	}
	n := uint64(0)
	for _, s := range p.other.slots {
		n += p.in[s/64] >> (s % 64) & 1
	}
	return int(n)
}

// append appends the slots not below from that both chunks have, ascending, until the slice has enough.
func (p pair) append(to []uint16, from uint16, enough int) []uint16 {
	if p.other.bits != nil {
		return appendCommonBits(to, p.in, p.other.bits, from, enough)
	}
	at, _ := slices.BinarySearch(p.other.slots, from)
	for _, s := range p.other.slots[at:] {
		if len(to) >= enough {
			break
		}
		if p.in[s/64]>>(s%64)&1 == 1 {
			to = append(to, s)
		}
	}
	return to
}

// commonBits counts the bits that two bitmaps have in common.
func commonBits(a, b *[chunkWords]uint64) (n int) {
	for i := range a {
		n += bits.OnesCount64(a[i] & b[i])
	}
	return n
}

func appendCommonBits(to []uint16, a, b *[chunkWords]uint64, from uint16, enough int) []uint16 {
	mask := ^uint64(1<<(from%64) - 1)
	for w := int(from / 64); w < chunkWords && len(to) < enough; w++ {
		for word := a[w] & b[w] & mask; word != 0 && len(to) < enough; word &= word - 1 {
			to = append(to, uint16(w*64+bits.TrailingZeros64(word)))
		}
		mask = ^uint64(0)
	}
	return to
}

// scratch is a bitmap to work in, made when it is first needed.
type scratch struct {
	bits  *[chunkWords]uint64
	slots []uint16 // that are set
}

var bitmaps = sync.Pool{New: func() any { return new([chunkWords]uint64) }}

// pair makes two chunks a pair, until wipe.
func (s *scratch) pair(a, b *chunk) pair {
	if a.n < b.n {
		a, b = b, a
	}
	if a.bits != nil {
		return pair{a.bits, b}
	}
	if s.bits == nil {
		s.bits = bitmaps.Get().(*[chunkWords]uint64)
	}
	s.slots = a.slots
	for _, slot := range a.slots {
		s.bits[slot/64] |= 1 << (slot % 64)
	}
	return pair{s.bits, b}
}

func (s *scratch) wipe() {
	for _, slot := range s.slots {
		s.bits[slot/64] = 0
	}
	s.slots = nil
}

func (s *scratch) release() {
	if s.bits != nil {
		bitmaps.Put(s.bits)
	}
}
