//go:build !amd64

package idset

func commonBits(a, b *[chunkWords]uint64) int { return commonBitsPortable(a, b) }
