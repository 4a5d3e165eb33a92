package idset

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// TestTheTopKGoOnBehindACandidate pages through a ranking: together the pages have all users who are not
// left out. Each user who is left out is counted as left out once.
func TestTheTopKGoOnBehindACandidate(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		lists := make([][]storage.UserID, rapid.IntRange(1, 5).Draw(t, "sets"))
		isPlain := drawPlain(t)
		isWeighted := rapid.Bool().Draw(t, "weighted")
		isCompact := rapid.Bool().Draw(t, "some are compact")
		p := TopK{}
		want := map[storage.UserID]Candidate{}
		for i := range lists {
			lists[i] = drawSome(t, c, random, "share")
			p.Sets, p.Compact = append(p.Sets, setOf(d, lists[i], isPlain())), append(p.Compact, "")
			if isCompact && rapid.Bool().Draw(t, "compact") {
				p.Sets[i], p.Compact[i], p.Directory = nil, CompactOf(d, lists[i]), d
			}
			weight := 1
			if isWeighted {
				weight = rapid.IntRange(1, 1000).Draw(t, "weight")
				p.Weights = append(p.Weights, int32(weight))
			}
			for _, id := range lists[i] {
				want[id] = Candidate{id, want[id].Count + weight}
			}
		}
		if rapid.Bool().Draw(t, "some are boosted") {
			boosted := drawSome(t, c, random, "boosted")
			p.Boosted, p.Boost = setOf(d, boosted, isPlain()), rapid.IntRange(1, 5).Draw(t, "boost")
			for _, id := range boosted {
				if v, listed := want[id]; listed {
					want[id] = Candidate{id, v.Count * p.Boost}
				}
			}
		}
		out := map[storage.UserID]bool{}
		var left []int
		for range rapid.IntRange(0, 3).Draw(t, "exceptions") {
			ids, n := drawSome(t, c, random, "left out"), 0
			for _, id := range ids {
				if _, listed := want[id]; listed && !out[id] {
					n++
				}
				out[id] = true
			}
			left = append(left, n)
			p.Except = append(p.Except, ids)
		}
		hidden := drawSome(t, c, random, "hidden")
		p.Hides = func(id storage.UserID) bool { _, found := slices.BinarySearch(hidden, id); return found }
		var ranking []Candidate
		for id, v := range want {
			if !out[id] && !p.Hides(id) {
				ranking = append(ranking, v)
			}
		}
		slices.SortFunc(ranking, func(a, b Candidate) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID)) })
		for pages := 0; pages < 3; pages++ {
			p.Most = rapid.SampledFrom([]int{0, 1, 7, 2000}).Draw(t, "most")
			best, excluded := p.Best()
			must.That(t, slices.Equal(best, ranking[:min(p.Most, len(ranking))]), "page %d: %d of %d are others", pages, len(best), len(ranking))
			must.That(t, slices.Equal(excluded, left), "%d are excluded, want %d", excluded, left)
			if len(best) > 0 {
				p.Behind, ranking = best[len(best)-1], ranking[len(best):]
			}
		}
		asked := drawSome(t, c, random, "asked for")
		asked = slices.Clone(asked[:min(len(asked), 40)])
		random.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		asked = append(asked, math.MaxInt64-1) // most likely unknown
		most := rapid.IntRange(0, 3).Draw(t, "holders")
		for asking, got := range Holders(p.Expanded(), asked, most) {
			var holders []int
			for i, list := range lists {
				if slices.Contains(list, asked[asking]) && len(holders) < most {
					holders = append(holders, i)
				}
			}
			must.That(t, slices.Equal(got, holders), "%v hold %d, want %v", got, asked[asking], holders)
		}
	})
}
