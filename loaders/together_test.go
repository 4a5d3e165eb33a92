package loaders_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/loaders"
	"kith/storage"
)

// Answers of several steps that are worked out together read as many bundles as the longest of them
// has steps, and no user twice. Each answer gets what it asked for.
func TestAnswersThatAreWorkedOutTogetherReadTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newCounting()
		l := loaders.For(loaders.Attach(t.Context(), store))
		steps := rapid.SliceOfN(rapid.SliceOfN(rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 9), func(n int) storage.UserID { return storage.UserID(n) }), 0, 4), 0, 4), 0, 5).Draw(t, "steps of each answer")
		longest := 0
		for _, own := range steps {
			longest = max(longest, len(own))
		}
		finished := make([]bool, len(steps))
		l.Together(len(steps), func(i int, r loaders.Reader) {
			for step, ids := range steps[i] {
				if step%2 == 1 {
					must.Equal(t, "counts", len(storage.CountLookups.Read(t.Context(), r, ids...)), len(ids))
					continue
				}
				for k, one := range storage.UserLookups.Read(t.Context(), r, ids...) {
					must.That(t, isUser(ids[k], one), "the answer to %d is %+v", ids[k], one)
				}
			}
			finished[i] = true
		})
		must.That(t, !slices.Contains(finished, false), "finished are %v", finished)
		must.That(t, store.bundles <= longest, "%d bundles of answers with %v", store.bundles, steps)
		for id, n := range store.users {
			must.That(t, n <= 1, "user %d was read %d times", id, n)
		}
	})
}
