package social

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
)

// A ballot counts as a map does, and its best are those of all candidates sorted.
func TestBallots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int64{1, 64, 1 << 32, 1 << 50}).Draw(t, "spread")
		lists := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(1, 400), 0, 200), 0, 20).Draw(t, "lists")
		weights := make([]int64, len(lists))
		ids := make([][]storage.UserID, len(lists))
		want := map[storage.UserID]Suggestion{}
		for i, list := range lists {
			weights[i] = rapid.Int64Range(1, 1_000_000).Draw(t, "weight")
			for _, n := range list {
				id := storage.UserID(n * spread)
				ids[i] = append(ids[i], id)
				s := want[id]
				want[id] = Suggestion{ID: id, Mutual: s.Mutual + 1, Score: s.Score + weights[i]}
			}
		}
		b := newBallot(ids, weights)
		if b.count != len(want) {
			t.Fatalf("%d candidates, want %d", b.count, len(want))
		}
		for _, n := range rapid.SliceOf(rapid.Int64Range(1, 500)).Draw(t, "struck") {
			id := storage.UserID(n * spread)
			if _, there := want[id]; b.strike(id) != there {
				t.Fatalf("strike %d: %v, want %v", id, !there, there)
			}
			delete(want, id)
		}
		from := SuggestionMark{Score: rapid.Int64Range(0, 3_000_000).Draw(t, "score"), ID: storage.UserID(rapid.Int64Range(1, 400).Draw(t, "id") * spread)}
		var all ranking
		for _, s := range want {
			if from.Score == 0 || s.Score < from.Score || s.Score == from.Score && s.ID > from.ID {
				all = append(all, s)
			}
		}
		slices.SortFunc(all, func(a, b Suggestion) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })

		n := rapid.IntRange(1, 50).Draw(t, "n")
		top, whole := b.top(n, from)
		if len(top) < min(n, len(all)) || len(top) > len(all) || whole != (len(top) == len(all)) {
			t.Fatalf("the best %d of %d are %d, all: %v", n, len(all), len(top), whole)
		}
		for i, s := range top {
			if s.ID != all[i].ID || s.Score != all[i].Score || s.Mutual != all[i].Mutual {
				t.Fatalf("place %d is %+v, want %+v", i, s, all[i])
			}
		}
	})
}
