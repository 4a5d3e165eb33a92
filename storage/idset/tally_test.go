package idset

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
)

// allVotes is what is counted of each user who is in any of the sets, in no order.
func allVotes(sets []*Set, weights []int64) (votes []Vote) {
	tally(sets, weights, func(b *booth, page uint32) {
		users := b.view.pages[page].ids
		for _, slot := range b.touched {
			votes = append(votes, Vote{users[slot], int(b.votes[slot]), b.score(slot)})
		}
	})
	return votes
}

// TestTally compares counting with a map, and the best with a sort of all.
func TestTally(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawCrowd(t, random, 10, 3000, 150_000)
		n := rapid.IntRange(0, 6).Draw(t, "sets")
		var sets []*Set
		var weights []int64
		if rapid.Bool().Draw(t, "weighted") {
			weights = []int64{}
		}
		want := map[storage.UserID]Vote{}
		for i := range n {
			ids := drawSome(t, c, random, "share")
			s := Build(d, ids)
			if rapid.IntRange(0, 9).Draw(t, "other directory") == 0 {
				s = s.In(NewDirectory())
			}
			sets = append(sets, s)
			weight := int64(1)
			if weights != nil {
				weight = int64(i)<<40 + 1
				weights = append(weights, weight)
			}
			for _, id := range ids {
				v := want[id]
				want[id] = Vote{id, v.Votes + 1, v.Score + weight}
			}
		}
		votes := allVotes(sets, weights)
		if again := allVotes(sets, weights); !slices.Equal(again, votes) {
			t.Fatal("another tally has other votes")
		}
		for _, v := range votes {
			if want[v.ID] != v {
				t.Fatalf("%+v, want %+v", v, want[v.ID])
			}
		}
		if len(votes) != len(want) {
			t.Fatalf("%d users have votes, want %d", len(votes), len(want))
		}
		out := drawSome(t, c, random, "left out")
		slices.SortFunc(votes, func(a, b Vote) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
		})
		votes = slices.DeleteFunc(votes, func(v Vote) bool {
			_, found := slices.BinarySearch(out, v.ID)
			return found
		})
		most := rapid.SampledFrom([]int{0, 1, 20, 3000}).Draw(t, "most")
		best, struck := Poll{Sets: sets, Weights: weights, Except: [][]storage.UserID{nil, out}, Most: most}.Best()
		if !slices.Equal(best, votes[:min(most, len(votes))]) {
			t.Fatalf("the best %d of %d are %d others", most, len(votes), len(best))
		}
		if left := len(want) - len(votes); !slices.Equal(struck, []int{0, left}) {
			t.Fatalf("%d are struck out, want %d", struck, left)
		}
	})
}
