package idset

import (
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"kith/storage"
)

// universe is the users that sets are made from, in ascending order of their ids.
type universe []storage.UserID

// denseIDs are 1 … n.
func denseIDs(n int) universe {
	ids := make(universe, n)
	for i := range ids {
		ids[i] = storage.UserID(i + 1)
	}
	return ids
}

// flakeIDs are ids as kith/accounts/ids makes them: 39 bits of time in units of 10 ms, of which two
// years have passed, a sequence of 8 bits that is mostly 0, and 16 bits of machine.
func flakeIDs(n int, random *rand.Rand) universe {
	const years = 2 * 365 * 24 * 3600 * 100
	ids := make(universe, n)
	at := storage.UserID(0)
	for i := range ids {
		at += storage.UserID(random.IntN(2*years/n)) + 1
		sequence := storage.UserID(0)
		if random.IntN(10) == 0 {
			sequence = storage.UserID(random.IntN(3))
		}
		ids[i] = at<<24 | sequence<<16 | storage.UserID(1024+random.IntN(4))
	}
	return ids
}

// anyIDs are drawn from all possible ids, including the lowest and the highest.
func anyIDs(n int, random *rand.Rand) universe {
	ids := universe{1, math.MaxInt64}
	for len(ids) < n {
		ids = append(ids, storage.UserID(random.Int64N(math.MaxInt64-1)+1))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// some draws about a share of a universe.
func (c universe) some(share float64, random *rand.Rand) []storage.UserID {
	var ids []storage.UserID
	for _, id := range c {
		if random.Float64() < share {
			ids = append(ids, id)
		}
	}
	return ids
}

// exactly draws n users of a universe.
func (c universe) exactly(n int, random *rand.Rand) []storage.UserID {
	var ids []storage.UserID
	if n < len(c)/4 {
		drawn := make(map[int]bool, n)
		for len(ids) < n {
			if at := random.IntN(len(c)); !drawn[at] {
				drawn[at] = true
				ids = append(ids, c[at])
			}
		}
	} else {
		for _, at := range random.Perm(len(c))[:n] {
			ids = append(ids, c[at])
		}
	}
	slices.Sort(ids)
	return ids
}

func drawRandom(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

// drawUniverse draws users, and a directory that has learned some of them in order, some out of order, and
// some not at all.
func drawUniverse(t *rapid.T, random *rand.Rand, sizes ...int) (universe, *Directory) {
	n := rapid.SampledFrom(sizes).Draw(t, "users")
	var c universe
	switch rapid.SampledFrom([]string{"dense", "flakes", "any"}).Draw(t, "ids") {
	case "dense":
		c = denseIDs(n)
	case "flakes":
		c = flakeIDs(n, random)
	default:
		c = anyIDs(n, random)
	}
	d := NewDirectory()
	d.Learn(c.some(rapid.SampledFrom([]float64{0, 0.5, 0.99, 1}).Draw(t, "learned in order"), random))
	shuffled := c.some(rapid.SampledFrom([]float64{0, 0.01, 0.6}).Draw(t, "learned late"), random)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	d.Learn(shuffled)
	return c, d
}

// drawSome draws a part of a universe, of such sizes that sets of every form occur.
func drawSome(t *rapid.T, c universe, random *rand.Rand, label string) []storage.UserID {
	return c.some(rapid.SampledFrom([]float64{0, 0.0005, 0.0145, 0.015, 0.02, 0.3, 0.95, 1}).Draw(t, label), random)
}

// setOf is a set of ascending ids, plain or numbered.
func setOf(d *Directory, ids []storage.UserID, plain bool) *Set {
	if plain {
		return Of(ids)
	}
	return Build(d, ids)
}

// drawPlain draws which sets are plain: none, some or all.
func drawPlain(t *rapid.T) func() bool {
	percent := rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "plain")
	return func() bool { return rapid.IntRange(1, 100).Draw(t, "plain or numbered") <= percent }
}

// common returns the ids that two ascending lists have in common, the slow way.
func common(a, b []storage.UserID) []storage.UserID {
	in := make(map[storage.UserID]bool, len(a))
	for _, id := range a {
		in[id] = true
	}
	var both []storage.UserID
	for _, id := range b {
		if in[id] {
			both = append(both, id)
		}
	}
	return both
}

// drawAfter draws an id to continue from: in the universe, next to it, or at either end.
func drawAfter(t *rapid.T, c universe) storage.UserID {
	if len(c) == 0 || rapid.IntRange(0, 5).Draw(t, "at an end") == 0 {
		return rapid.SampledFrom([]storage.UserID{0, 1, math.MaxInt64}).Draw(t, "after")
	}
	return rapid.SampledFrom(c).Draw(t, "after") - storage.UserID(rapid.IntRange(0, 1).Draw(t, "beside"))
}
