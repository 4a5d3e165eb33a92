package sim

import "unsafe"

// Go draws which case of a select comes first, where a loop over a map begins, and which of two timers of one moment fires first. No setting
// has it draw the same again. So the simulator writes into what the thread draws from; a bubble runs on one.

// draws is the end of runtime.m: chacha8, which maps draw from, and cheaprand, which the rest does.
type draws struct {
	_          [32]uint64 // drawn already
	seed       [4]uint64
	i, n, c, _ uint32
	cheap      uint64
}

//go:linkname getm runtime.getm
func getm() unsafe.Pointer

//go:linkname cheaprand runtime.cheaprand
func cheaprand() uint32

// drawsAt is where they are in a thread: the word that changes by a known number when something is drawn. 0 if there is none: Go has changed.
var drawsAt = func() uintptr {
	type thread [255]uint64 // it has no more
	before := *(*thread)(getm())
	cheaprand()
	for i, now := range *(*thread)(getm()) {
		if now-before[i] == 0xa0761d6478bd642f {
			return uintptr(i)*unsafe.Sizeof(now) - unsafe.Offsetof(draws{}.cheap)
		}
	}
	return 0
}()

// drawFrom has what Go draws next follow from a seed.
func drawFrom(seed uint64) {
	if drawsAt != 0 {
		d := (*draws)(unsafe.Add(getm(), drawsAt))
		d.seed, d.i, d.n, d.c, d.cheap = [4]uint64{seed}, 0, 0, 0, seed
	}
}
