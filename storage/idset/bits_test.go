package idset

import (
	"math/rand/v2"
	"testing"
)

// TestCommonBits compares the processor's instructions with counting bit by bit.
func TestCommonBits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 21))
	var a, b [chunkWords]uint64
	for word := range a { // each word alone first, so that no word is left out or counted twice
		a, b = [chunkWords]uint64{}, [chunkWords]uint64{}
		a[word], b[word] = ^uint64(0), 1<<63|1<<17
		if n, portable := commonBits(&a, &b), commonBitsPortable(&a, &b); n != 2 || portable != 2 {
			t.Fatalf("word %d: %d bits, %d in Go alone", word, n, portable)
		}
	}
	for range 200 {
		want := 0
		for i := range a {
			a[i], b[i] = random.Uint64(), random.Uint64()|random.Uint64()
			for bit := range 64 {
				want += int(a[i] >> bit & (b[i] >> bit) & 1)
			}
		}
		if n, portable := commonBits(&a, &b), commonBitsPortable(&a, &b); n != want || portable != want {
			t.Fatalf("%d bits, %d in Go alone, want %d", n, portable, want)
		}
	}
}
