package idset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/properties"
	"kith/storage"
)

// TestAmong compares the ids that are found in a list, in one call or in several that continue from one
// another, with a look at every position.
func TestAmong(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawUniverse(t, random, 10, 3000, 150_000)
		list := drawPositions(t, c, random)
		line := BuildTimeline(d, list)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			line, list = change(t, line, list, c, random)
		}
		ids := drawSome(t, c, random, "share")
		in := Build(d, ids)
		if rapid.IntRange(0, 9).Draw(t, "other directory") == 0 {
			in = in.In(NewDirectory())
		}
		absent := rapid.Bool().Draw(t, "absent")
		after := drawBound(t, list)
		rest := slowPage(list, after, storage.Position{}, len(list)+1, false)
		most, examine := rapid.IntRange(1, 3000).Draw(t, "most"), rapid.SampledFrom([]int{1, 7, 600, 3000, 100_000}).Draw(t, "examine")
		for rounds := 0; rounds < 50; rounds++ {
			var want []storage.Position
			examined := 0
			for examined < min(examine, len(rest)) && len(want) < most {
				if _, is := slices.BinarySearch(ids, rest[examined].Peer); is != absent {
					want = append(want, rest[examined])
				}
				examined++
			}
			got := line.Among(in, absent, after, most, examine)
			if !slices.Equal(got.Positions, want) || got.Examined != examined || got.End != (examined == len(rest)) {
				t.Fatalf("round %d: %d of %d positions, at the end: %t; want %d of %d", rounds, len(got.Positions), got.Examined, got.End, len(want), examined)
			}
			if examined > 0 && got.Last != rest[examined-1] || examined == 0 && got.Last != after {
				t.Fatalf("the last is %v", got.Last)
			}
			if rest = rest[examined:]; got.End {
				return
			}
			after = got.Last
		}
	})
}
