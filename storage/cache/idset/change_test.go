package idset

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// TestChangesMakeVersions changes sets near the limits of their forms, and compares every version with its
// content when it was made.
func TestChangesMakeVersions(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 4000, 70_000)
		ids := c.exactly(min(len(c), rapid.SampledFrom([]int{0, 5, 1030, 2040, 3000}).Draw(t, "at first")), random)
		s := Build(d, ids)
		versions, wants := []*Set{s}, [][]storage.UserID{slices.Clone(ids)}
		growing := rapid.SampledFrom([]float64{0.1, 0.5, 0.9}).Draw(t, "growing")
		steps := rapid.SampledFrom([]int{1, 100, 2500}).Draw(t, "steps")
		for step := range steps {
			id := c[random.IntN(len(c))]
			insert := random.Float64() < growing
			if !insert && len(ids) > 0 && random.IntN(10) > 0 {
				id = ids[random.IntN(len(ids))]
			}
			at, had := slices.BinarySearch(ids, id)
			next := s
			if insert {
				next = s.Insert(id)
				if !had {
					ids = slices.Insert(ids, at, id)
				}
			} else {
				next = s.Remove(id)
				if had {
					ids = slices.Delete(ids, at, at+1)
				}
			}
			must.Equal(t, "the set is the same", next == s, insert == had)
			s = next
			must.That(t, s.Len() == len(ids) && s.Contains(id) == insert, "%d users, want %d", s.Len(), len(ids))
			if step%(steps/5+1) == 0 || step == steps-1 {
				versions, wants = append(versions, s), append(wants, slices.Clone(ids))
			}
		}
		for i, v := range versions {
			must.That(t, slices.Equal(v.IDs(), wants[i]), "version %d of %d has changed", i, len(versions))
		}
	})
}

// TestChunksChangeTheirForm crosses the limit of a chunk, and of a set, in both directions.
func TestChunksChangeTheirForm(t *testing.T) {
	t.Parallel()
	d := NewDirectory()
	d.Learn(denseIDs(3 * pageSlots))
	s := Build(d, nil)
	ids := denseIDs(maxFew + 10)
	for i, id := range ids {
		s = s.Insert(id * 3)
		isFew := s.chunks == nil
		must.That(t, isFew == (i < maxFew), "with %d users it is a list: %t", i+1, isFew)
	}
	sawBits, sawSlots := s.chunks[0].bits != nil, false
	for i, id := range ids {
		s = s.Remove(id * 3)
		if len(s.chunks) > 0 {
			sawSlots = sawSlots || s.chunks[0].bits == nil
		}
		if want := len(ids) - i - 1; s.Len() != want || len(s.IDs()) != want {
			t.Fatalf("%d users, %d yielded, want %d", s.Len(), len(s.IDs()), want)
		}
	}
	check.That(t, sawBits && s.chunks == nil, "bitmaps %t, lists %t; in the end it is a list: %t", sawBits, sawSlots, s.chunks == nil)
}

// TestAChangeSharesAllOtherChunks checks that a change of a large set takes kilobytes.
func TestAChangeSharesAllOtherChunks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	c := denseIDs(1_000_000)
	d := NewDirectory()
	d.Learn(c)
	s := Build(d, c.exactly(400_000, random))
	for range 100 {
		id := c[random.IntN(len(c))]
		next := s.Insert(id)
		if next == s {
			next = s.Remove(id)
		}
		n := rewritten(s, next)
		must.That(t, n <= 9<<10, "a change of %d users rewrote %d bytes", s.Len(), n)
		s = next
	}
}

// rewritten returns how many bytes of a version are not shared with the version before.
func rewritten(before, after *Set) int {
	n := 72 + 4*cap(after.few)
	for _, c := range after.chunks {
		if slices.Contains(before.chunks, c) {
			n += 8
		} else {
			n += c.bytes()
		}
	}
	return n
}

// TestVersionsAreReadWhileTheNextIsMade lets readers check versions while writers make more, and while
// the directory learns users; the race detector watches.
func TestVersionsAreReadWhileTheNextIsMade(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	c := flakeIDs(5000, random)
	d := NewDirectory()
	d.Learn(c[:2500])
	versions := make(chan *Set, 16)
	timelines := make(chan *Timeline, 16)
	var writers, readers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			s, line := Build(d, nil), BuildTimeline(d, nil)
			for i := range 3000 {
				id := c[random.IntN(len(c))]
				s = s.Insert(id)
				line = line.Insert(storage.Position{UpdateTime: storage.Micros(i), Peer: id})
				if i%10 == 0 {
					versions <- s
					timelines <- line
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for s := range versions {
				line := <-timelines
				ids := s.IDs()
				check.That(t, len(ids) == s.Len() && slices.IsSorted(ids) && Common(s, s.Insert(c[0])) == s.Len(), "a version of %d users yields %d", s.Len(), len(ids))
				check.Equal(t, "a page of the whole list", len(line.Page(storage.Position{}, storage.Position{}, 5000, false)), line.Len())
				check.Equal(t, "users that have counts", len(allCandidates([]*Set{s, s})), s.Len())
			}
		})
	}
	writers.Wait()
	close(versions)
	readers.Wait()
}
