package idset

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// allCandidates are the counts of each user who is in any of the sets, in no order.
func allCandidates(sets []*Set) (counts []Candidate) {
	if len(sets) == 0 {
		return nil
	}
	dir := sets[0].dir
	countPages(dir, TopK{Sets: sets}.iterators(dir), func(b *pageCounts, page uint32) {
		users := b.view.pages[page].ids
		for _, slot := range b.touched {
			counts = append(counts, Candidate{users[slot], int(b.counts[slot])})
		}
	})
	return counts
}

// TestTopKCounts compares the counts with those of a map, and the best candidates with sorting all of them.
func TestTopKCounts(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		n := rapid.IntRange(0, 6).Draw(t, "sets")
		var sets []*Set
		want := map[storage.UserID]Candidate{}
		for range n {
			ids := drawSome(t, c, random, "share")
			s := Build(d, ids)
			if rapid.IntRange(0, 9).Draw(t, "other directory") == 0 {
				s = s.In(NewDirectory())
			}
			sets = append(sets, s)
			for _, id := range ids {
				want[id] = Candidate{id, want[id].Count + 1}
			}
		}
		counts := allCandidates(sets)
		must.That(t, slices.Equal(allCandidates(sets), counts), "another count has other counts")
		for _, v := range counts {
			must.That(t, want[v.ID] == v, "%+v, want %+v", v, want[v.ID])
		}
		must.Equal(t, "users have counts", len(counts), len(want))
		out := drawSome(t, c, random, "left out")
		slices.SortFunc(counts, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID))
		})
		counts = slices.DeleteFunc(counts, func(v Candidate) bool {
			_, found := slices.BinarySearch(out, v.ID)
			return found
		})
		most := rapid.SampledFrom([]int{0, 1, 20, 3000}).Draw(t, "most")
		best, excluded := TopK{Sets: sets, Except: [][]storage.UserID{nil, out}, Most: most}.Best()
		must.That(t, slices.Equal(best, counts[:min(most, len(counts))]), "the best %d of %d are %d others", most, len(counts), len(best))
		left := len(want) - len(counts)
		must.That(t, slices.Equal(excluded, []int{0, left}), "%d are excluded out, want %d", excluded, left)
	})
}
