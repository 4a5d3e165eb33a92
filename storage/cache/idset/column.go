package idset

import "math/bits"

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
