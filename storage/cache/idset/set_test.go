package idset

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// TestSetsHoldWhatTheyWereBuiltOf compares sets with slices, in every form and with any
// directory.
func TestSetsHoldWhatTheyWereBuiltOf(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		ids := drawSome(t, c, random, "share")
		given := slices.Concat(ids, ids[:len(ids)/3])
		if rapid.Bool().Draw(t, "in any order") {
			random.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		}
		s := Build(d, given)
		must.That(t, s.Len() == len(ids) && slices.Equal(s.IDs(), ids), "%d ids, want %d", s.Len(), len(ids))
		for range 100 {
			id := c[random.IntN(len(c))]
			_, want := slices.BinarySearch(ids, id)
			must.That(t, s.Contains(id) == want, "contains %d: %t", id, !want)
		}
		other := NewDirectory()
		moved := s.In(other)
		must.That(t, slices.Equal(moved.IDs(), ids) && s.In(d) == s, "it is another set with another directory")
	})
}

// TestIntersections compares intersections of sets with those of slices.
func TestIntersections(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		x, y := drawSome(t, c, random, "share of a"), drawSome(t, c, random, "share of b")
		a, b := Build(d, x), Build(d, y)
		if rapid.IntRange(0, 9).Draw(t, "other directory") == 0 {
			b = b.In(NewDirectory())
		}
		both := common(x, y)
		after, first := drawAfter(t, c), rapid.IntRange(0, 50).Draw(t, "first")
		want := Behind(both, after)
		want = want[:min(first, len(want))]
		for _, pair := range [][2]*Set{{a, b}, {b, a}} {
			got, total := Intersect(pair[0], pair[1], after, first)
			if total != len(both) || !slices.Equal(got, want) {
				t.Fatalf("%d in common, want %d; the first %d above %d are %d, want %d", total, len(both), first, after, got, want)
			}
			n := Common(pair[0], pair[1])
			must.That(t, n == total, "%d counted, %d found", n, total)
		}
	})
}

// TestListsInChunks intersects sets whose chunks are all lists, again and again with the same working
// memory.
func TestListsInChunks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 18))
	c, d := denseIDs(5*pageSlots), NewDirectory()
	d.Learn(c)
	for range 20 {
		x, y := c.exactly(4000, random), c.exactly(3000, random)
		a, b := Build(d, x), Build(d, y)
		for _, chunk := range slices.Concat(a.chunks, b.chunks) {
			must.That(t, chunk.bits == nil, "a chunk is a bitmap")
		}
		both := common(x, y)
		got, total := Intersect(a, b, 0, pageSlots)
		must.That(t, total == len(both) && slices.Equal(got, both) && Common(b, a) == total, "%d in common, %d counted, want %d", len(got), total, len(both))
	}
}

// TestDirectoriesNumberEverybodyOnce: a user keeps its number permanently, in whatever order users are
// learned.
func TestDirectoriesNumberEverybodyOnce(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		before := d.number(c, nil)
		d.Learn(c)
		after := d.number(c, nil)
		must.That(t, slices.Equal(after, before) && d.Len() == len(c), "%d users have numbers, want %d", d.Len(), len(c))
		sorted := slices.Clone(before)
		slices.Sort(sorted)
		must.That(t, len(slices.Compact(sorted)) == len(c), "two users have the same number")
		v, late := d.view.Load(), 0
		for i, o := range before {
			must.That(t, v.id(o) == c[i], "number %d is %d's, and says %d", o, c[i], v.id(o))
			if v.pages[o.page()].late {
				late++
			}
		}
		must.Equal(t, "late", d.Late(), late)
	})
}

// TestUnknownUsers: a look-up of a user does not number the user.
func TestUnknownUsers(t *testing.T) {
	t.Parallel()
	d := NewDirectory()
	s := Build(d, []storage.UserID{5, 7})
	for _, id := range []storage.UserID{1, 6, 8} {
		check.That(t, !s.Contains(id) && s.Remove(id) == s && d.Len() == 2, "user %d is in the set or has a number: %d have", id, d.Len())
	}
}

// TestBytesAreWhatTheHeapHas compares the reported sizes with what was allocated.
func TestBytesAreWhatTheHeapHas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := flakeIDs(300_000, random)
	d := NewDirectory()
	d.Learn(c)
	for _, n := range []int{50, 2000, 5000, 30_000, 200_000} {
		const copies = 200
		var sets [copies]*Set
		ids := c.exactly(n, random)
		before := liveBytes()
		reported := 0
		for i := range sets {
			sets[i] = Build(d, ids)
			reported += sets[i].Bytes()
		}
		if took := liveBytes() - before; float64(reported) < 0.7*float64(took) || float64(reported) > 1.1*float64(took) {
			t.Errorf("%d sets of %d users take %d bytes and report %d", copies, n, took, reported)
		}
		runtime.KeepAlive(sets)
		runtime.KeepAlive(ids)
	}
}

func liveBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
