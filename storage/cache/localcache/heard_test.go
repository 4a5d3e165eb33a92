package localcache_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// TestNothingIsKeptOfAShardThatIsNotHeard: of users with even ids. Of the others everything is kept, except what anybody may change.
func TestNothingIsKeptOfAShardThatIsNotHeard(t *testing.T) {
	store := double.Of(oracle.New())
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna"}, {ID: 2, Handle: "berta"}})
	cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, ShardOf: func(id storage.UserID) int { return int(id+1) % 2 }})
	t.Cleanup(cache.Close)
	name := func(id storage.UserID) string { return storage.UserLookups.Read(t.Context(), cache, id)[0].Value.Name }
	follows := func(from storage.UserID) bool {
		return len(storage.PageLookups[storage.Forward].Read(t.Context(), cache, storage.PageQuery{Owner: from, Limit: 3})[0].Value) > 0
	}
	isThere := func(from storage.UserID) bool {
		return storage.EdgeLookups[storage.Forward].Read(t.Context(), cache, storage.Pair{From: from, To: 9})[0].Found
	}
	marked := func(from storage.UserID) bool {
		return storage.EdgeLookups[storage.Favorites].Read(t.Context(), cache, storage.Pair{From: from, To: 9, Item: 1})[0].Found
	}
	whose := func(handle string) storage.UserID {
		return storage.HandleLookups.Read(t.Context(), cache, handle)[0].Value
	}
	seen := func(id storage.UserID) [4]bool {
		return [...]bool{name(id) == "new", follows(id), isThere(id), marked(id)}
	}
	cache.SwitchShards([]bool{true, false})
	check.Equal(t, "what is seen before anything changes", [...]any{seen(1), seen(2), whose("new")}, [...]any{[4]bool{}, [4]bool{}, storage.UserID(0)})
	text := "new"
	for id := storage.UserID(1); id < 3; id++ {
		_, _, _ = store.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &text}, 5)
		write(t, store, storage.Edge{From: id, To: 9, Type: storage.Following, UpdateTime: 5})
		store.Apply(t.Context(), storage.Favorites, []storage.Edge{{From: id, To: 9, Item: 1, Type: storage.Following, UpdateTime: 5}}, storage.IfNewer)
	}
	store.CreateUsers(t.Context(), []storage.User{{ID: 4, Handle: "new"}})
	check.Equal(t, "what is seen of a user who is heard of", seen(1), [4]bool{})
	check.Equal(t, "what is seen of a user who is not", seen(2), [4]bool{true, true, true, true})
	check.Equal(t, "the user with the new handle", whose("new"), 4)
	cache.SwitchShards(nil)
	check.Equal(t, "what is seen once all are heard", seen(1), [4]bool{true, true, true, true})
}

// Who asks for something on a shard that is not heard does not get what another began to read before.
func TestNobodyJoinsAReadOfAShardThatIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, read, goOn := double.Of(oracle.New()), make(chan struct{}, 2), make(chan struct{})
		store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna"}})
		double.After(store, func(storage.Side, []storage.UserID, []storage.Result[storage.Profile]) {
			read <- struct{}{}
			<-goOn
		}, storage.ProfileLookups)
		cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20})
		defer cache.Close()
		cache.SwitchShards([]bool{false})
		names := make(chan string, 2)
		ask := func() { names <- storage.UserLookups.Read(t.Context(), cache, 1)[0].Value.Name }
		go ask()
		<-read
		text := "new"
		_, _, err := store.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &text}, 5)
		must.OK(t, err)
		go ask()
		synctest.Wait()
		close(goOn)
		answers := []string{<-names, <-names}
		check.That(t, slices.Contains(answers, "new"), "nobody sees the new name: %q", answers)
	})
}
