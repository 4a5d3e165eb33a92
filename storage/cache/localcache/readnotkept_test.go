package localcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// Who asks for a list after a change of it has been acknowledged sees the change, also if it waits for a read that began before, and the
// list is not kept after all: the cache is turned off meanwhile, or forgets everything, or hears of a row that it would have to compare.
func TestAReadThatIsNotKeptHasTheRowsThatCame(t *testing.T) {
	const oldRow = "an old row comes first"
	for name, what := range map[string]func(*localcache.Cache){
		"it is kept":                   func(*localcache.Cache) {},
		oldRow:                         func(*localcache.Cache) {},
		"the cache forgets":            (*localcache.Cache).Forget,
		"the cache is turned off":      func(c *localcache.Cache) { c.Switch(false) },
		"the shard is not heard":       func(c *localcache.Cache) { c.SwitchShards([]bool{false}) },
		"the rows are asked for again": func(c *localcache.Cache) { c.RequireRows([]storage.Row{{Edge: storage.Edge{From: 1, To: 3}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, reads := oracle.New(), make(chan chan struct{}, 9)
				inner.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
				cache := localcache.New(localcache.Config{Bytes: 1 << 20, Store: slow(inner, func(what string) {
					if what == "lists" {
						goOn := make(chan struct{})
						reads <- goOn
						<-goOn
					}
				})})
				defer cache.Close()
				shown := make(chan int, 2)
				ask := func() {
					page := storage.PageLookups[storage.Forward].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 3})[0]
					shown <- len(page.Value)
				}
				go ask()
				first := <-reads // it has read that there is nobody
				if name == oldRow {
					past := storage.MicrosOf(time.Now().Add(-time.Hour))
					cache.Apply(t.Context(), localcache.ChangedRows(storage.Row{Edge: storage.Edge{From: 1, To: 3, Type: storage.Following, UpdateTime: past}}), false)
				}
				row := storage.Row{Edge: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}}
				inner.Apply(t.Context(), storage.Forward, []storage.Edge{row.Edge}, storage.IfNewer)
				cache.Apply(t.Context(), localcache.ChangedRows(row), true)
				go ask()
				synctest.Wait()
				what(cache)
				close(first)
				synctest.Wait()
				for len(reads) > 0 {
					close(<-reads)
					synctest.Wait()
				}
				<-shown
				check.Equal(t, "followings after an acknowledged follow", <-shown, 1)
			})
		})
	}
}

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
