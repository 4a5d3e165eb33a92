package localcache_test

import (
	"context"
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// claiming is a store whose users have one following each, and counts that say otherwise.
func claiming(following int64) storage.Store {
	store := double.Of(oracle.New())
	double.Read(store, func(_ context.Context, _ storage.Side, ids []storage.UserID) []storage.Result[storage.Profile] {
		return storage.Each(ids, func(id storage.UserID) storage.Result[storage.Profile] {
			counts := storage.Counts{Following: following}
			return storage.Result[storage.Profile]{Value: storage.Profile{User: storage.User{ID: id}, Exists: true, Counts: counts, Counted: true}, Found: true}
		})
	}, storage.ProfileLookups)
	double.Read(store, func(_ context.Context, _ storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
		return storage.Each(owners, func(storage.UserID) storage.Result[[]storage.UserID] {
			return storage.Result[[]storage.UserID]{Value: []storage.UserID{7}, Found: true}
		})
	}, storage.NeighbourLookups...)
	return store
}

// Users whose lists are too long for the cache are no recommenders, and neither are users of one look-up
// who follow more than 500,000 together. Their lists are lists like others.
func TestLongListsAreNotReadForSuggestions(t *testing.T) {
	for _, c := range []struct {
		following int64
		users     int
		found     int
	}{{20_000, 1, 0}, {5_000, 100, 100}, {5_000, 101, 100}, {5_001, 100, 99}} {
		cache := newCache(t, claiming(c.following), 256<<20)
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
		check.Equal(t, fmt.Sprintf("results for users who follow %d", c.following), len(asked.Results), c.users)
		check.Equal(t, fmt.Sprintf("lists of %d users who follow %d", c.users, c.following), found, c.found)
	}
}
