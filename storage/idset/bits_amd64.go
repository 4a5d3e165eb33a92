package idset

import "golang.org/x/sys/cpu"

// On processors that count the bits of eight words at once (since Ice Lake and Zen 4), that
// instruction is used: in plain Go, two bitmaps take 0.45 µs instead of 0.07. Go's own package for
// such instructions is still an experiment.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPOPCNTDQ

func commonBits(a, b *[chunkWords]uint64) int {
	if wide {
		return commonBitsWide(a, b)
	}
	return commonBitsPortable(a, b)
}

// commonBitsWide is commonBitsPortable in AVX-512, in bits_amd64.s.
//
//go:noescape
func commonBitsWide(a, b *[chunkWords]uint64) int
