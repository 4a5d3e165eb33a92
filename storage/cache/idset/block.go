package idset

import (
	"math/bits"
	"sort"

	"kith/storage"
)

// block is entries, packed, oldest first.
type block struct {
	n             int
	oldest        storage.Position
	times, people column
}

// packable is the times and the ordinals of entries, oldest first.
type packable struct{ times, people []uint64 }

func (p packable) append(q packable) packable {
	return packable{append(p.times, q.times...), append(p.people, q.people...)}
}

func (p packable) slice(from, to int) packable { return packable{p.times[from:to], p.people[from:to]} }

// block packs the entries, of which there is at least one.
func (p packable) block(v *view) *block {
	b := &block{n: len(p.times), times: columnOf(p.times), people: columnOf(p.people)}
	b.oldest = b.at(v, 0)
	return b
}

func (b *block) at(v *view, i int) storage.Position {
	return storage.Position{
		UpdateTime: storage.Micros(b.times.at(i)),
		Peer:       v.id(ordinal(b.people.at(i))),
	}
}

// find returns where a position is or would be, and whether it is there.
func (b *block) find(v *view, at storage.Position) (int, bool) {
	i := sort.Search(b.n, func(i int) bool { return b.at(v, i).Compare(at) <= 0 })
	return i, i < b.n && b.at(v, i) == at
}

// entries unpacks the block, with room for more entries.
func (b *block) entries(more int) packable {
	p := packable{make([]uint64, b.n, b.n+more), make([]uint64, b.n, b.n+more)}
	for i := range b.n {
		p.times[i], p.people[i] = b.times.at(i), b.people.at(i)
	}
	return p
}

func (b *block) bytes() int {
	return 8 + 112 + 8*(len(b.times.words)+len(b.people.words))
}

// column is whole numbers, each stored as its distance from the smallest, in as many bits as the
// largest distance needs (frame of reference). So any one of them is found at once.
type column struct {
	least uint64
	width uint8 // bits, 0 … 64
	words []uint64
}

func columnOf(values []uint64) column {
	if len(values) == 0 {
		return column{}
	}
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	c := column{least: least, width: uint8(bits.Len64(most - least))}
	c.words = make([]uint64, (len(values)*int(c.width)+63)/64)
	for i, v := range values {
		c.put(i, v-least)
	}
	return c
}

// put writes a distance into bits that are still 0.
func (c column) put(i int, distance uint64) {
	if c.width == 0 {
		return
	}
	bit := i * int(c.width)
	word, shift := bit/64, bit%64
	c.words[word] |= distance << shift
	if shift+int(c.width) > 64 {
		c.words[word+1] |= distance >> (64 - shift)
	}
}

// at is the i-th number. O(1).
func (c column) at(i int) uint64 {
	if c.width == 0 {
		return c.least
	}
	bit := i * int(c.width)
	word, shift := bit/64, bit%64
	distance := c.words[word] >> shift
	if shift+int(c.width) > 64 {
		distance |= c.words[word+1] << (64 - shift)
	}
	return c.least + distance&(1<<c.width-1)
}
