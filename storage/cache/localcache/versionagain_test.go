package localcache_test

import (
	"testing"
	"testing/synctest"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// What is being read while everything is forgotten, because a shard was restored, is not found under a version that was lost and comes again.
func TestAVersionThatComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, read, goOn, ctx := double.Of(oracle.New()), make(chan struct{}, 2), make(chan struct{}), t.Context()
		double.After(store, func(storage.Side, []storage.LastQuery, []storage.Result[storage.Micros]) {
			read <- struct{}{}
			<-goOn
		}, storage.LastPostLookups)
		cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20})
		defer cache.Close()
		last := func() storage.Result[storage.Micros] {
			return storage.LastPostLookups.Read(ctx, cache, storage.LastQuery{UpTo: 100}.Of([]storage.UserID{1})...)[0]
		}
		publish := func(n int64) {
			t.Helper()
			_, _, err := store.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: 1, Number: n}, Key: "key", Text: "a", At: storage.Micros(n)})
			must.OK(t, err)
		}
		store.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "a"}})
		restore := store.Backup(0)
		publish(1)
		storage.ProfileLookups.Read(ctx, cache, 1)
		restore()
		go last()
		<-read
		cache.Forget()
		publish(2)
		close(goOn)
		synctest.Wait()
		check.Equal(t, "the time of the last post", last().Value, 2)
	})
}
