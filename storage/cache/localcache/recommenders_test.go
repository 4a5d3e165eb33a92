package localcache_test

import (
	"context"
	"testing"

	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// claiming is a store whose users have one following each, and counts that say otherwise.
type claiming struct {
	storage.Store
	following int64
}

func (s *claiming) profiles(_ context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	results := make([]storage.Result[storage.Profile], len(ids))
	for i, id := range ids {
		results[i].Found, results[i].Value = true, storage.Profile{
			User: storage.User{ID: id}, Exists: true, Counts: storage.Counts{Following: s.following}, Counted: true,
		}
	}
	return results
}

func (s *claiming) neighbours(_ context.Context, _ storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	results := make([]storage.Result[[]storage.UserID], len(owners))
	for i := range results {
		results[i].Found, results[i].Value = true, []storage.UserID{7}
	}
	return results
}

func (s *claiming) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	storage.NeighbourLookups.Instead(ctx, b, s.neighbours)
	s.Store.Bundle(ctx, b)
}

// Users whose lists are too long for the cache are no recommenders, and neither are users of one look-up
// who follow more than 500,000 together. Their lists are lists like others.
func TestLongListsAreNotReadForSuggestions(t *testing.T) {
	for _, c := range []struct {
		following int64
		users     int
		found     int
	}{{20_000, 1, 0}, {5_000, 100, 100}, {5_000, 101, 100}, {5_001, 100, 99}} {
		cache := newCache(t, &claiming{oracle.New(), c.following}, 256<<20)
		var b storage.Bundle
		asked := idset.RecommenderLookups.Ask(&b)
		for id := range storage.UserID(c.users) {
			asked.Keys = append(asked.Keys, id+1)
		}
		cache.Bundle(t.Context(), &b)
		found := 0
		for _, r := range asked.Results {
			if r.Found {
				found++
			}
		}
		if found != c.found || len(asked.Results) != c.users {
			t.Errorf("%d users who follow %d: %d of %d results are lists, want %d", c.users, c.following, found, len(asked.Results), c.found)
		}
	}
}
