package idset

import (
	"math/rand/v2"
	"testing"

	"kith/internal/must"
)

// Common bits are the bits that both bitmaps have, whichever word they are in.
func TestCommonBits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(20, 21))
	var a, b [chunkWords]uint64
	for word := range a { // each word alone first, so that no word is left out or counted twice
		a, b = [chunkWords]uint64{}, [chunkWords]uint64{}
		a[word], b[word] = ^uint64(0), 1<<63|1<<17
		n := commonBits(&a, &b)
		must.That(t, n == 2, "word %d: %d bits", word, n)
	}
	for range 200 {
		want := 0
		for i := range a {
			a[i], b[i] = random.Uint64(), random.Uint64()|random.Uint64()
			for bit := range 64 {
				want += int(a[i] >> bit & (b[i] >> bit) & 1)
			}
		}
		must.Equal(t, "bits", commonBits(&a, &b), want)
	}
}
