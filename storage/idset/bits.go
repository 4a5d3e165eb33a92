package idset

import "math/bits"

// commonBitsPortable counts the bits that two bitmaps have in common. It uses four sums, so that
// additions do not wait for one another.
func commonBitsPortable(a, b *[chunkWords]uint64) int {
	var n0, n1, n2, n3 int
	for i := 0; i < chunkWords; i += 4 {
		n0 += bits.OnesCount64(a[i] & b[i])
		n1 += bits.OnesCount64(a[i+1] & b[i+1])
		n2 += bits.OnesCount64(a[i+2] & b[i+2])
		n3 += bits.OnesCount64(a[i+3] & b[i+3])
	}
	return n0 + n1 + n2 + n3
}
