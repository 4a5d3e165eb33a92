package resolvers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/watch"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/feed/recent"
	"kith/storage/sqlstore"
)

// warmStore is a store whose requests read through a cache.
type warmStore struct {
	*watch.Store
	cache *localcache.Cache
}

func newWarmStore(t testing.TB, store *sqlstore.Store) *warmStore {
	c := localcache.New(localcache.Config{Store: store, Bytes: 64 << 20})
	t.Cleanup(c.Close)
	return &warmStore{watch.Watch(store, func(ctx context.Context, w storage.Change) { c.Apply(ctx, w, true) }), c}
}

func (w *warmStore) AtHand(b *storage.Bundle)                      { w.cache.AtHand(b) }
func (w *warmStore) Bundle(ctx context.Context, b *storage.Bundle) { w.cache.Bundle(ctx, b) }

// TestAWarmFeedTakesNoStatement, and neither do posts by id.
func TestAWarmFeedTakesNoStatement(t *testing.T) {
	for _, shards := range []int{1, 4} {
		var recorder apitest.Recorder
		store := opened.Store(t, sqlstore.Config{Location: ringOn(t, kindOfRing{shards: shards}), StatementTimeout: generous, OnStatement: recorder.Observe})
		posts := recent.NewSince(1<<20, time.Now, 0)
		api := apitest.New(t, newWarmStore(t, store), apitest.Options{Feeds: &social.Feeds{Recent: posts}}).As(2)
		id := ""
		for by := storage.UserID(3); by < 43; by++ {
			id = publish(t, api, by, "x", by.String())
		}
		for query, want := range map[string]costs{
			`{ viewer { feed(first: 20) { nodes { id text commentCount favoritesReceivedCount author { name followerCount viewerRelationship { status } } } complete } } }`: {},
			`{ viewer { feed(first: 20) { nodes { viewerHasFavorited author { name } } } } }`:                                                                               {},
			fmt.Sprintf(`{ node(id: %q) { ... on Post { text author { name } } } }`, id):                                                                                    {},
		} {
			api.Ask(query, nil).Whole()
			recorder.Take()
			api.Ask(query, nil).Whole()
			check.Equal(t, fmt.Sprintf("%d shards: %s", shards, query), recorder.Take().MostOnOneShard(), want)
		}
	}
}
