package localcache

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Users are numbered all or not at all: only if there are not too many, and if they can be read.
func TestADirectoryIsWhole(t *testing.T) {
	store := oracle.New()
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}, {ID: 3, Handle: "c"}})
	for name, c := range map[string]struct {
		down   error
		atMost int
		fails  bool
	}{
		"as many as may be":    {nil, 3, false},
		"one more":             {nil, 2, true},
		"a shard that is down": {errors.New("the shard is down"), 3, true},
	} {
		users := double.Of(store)
		double.Before(users, func(context.Context, []storage.ShardQuery[storage.UserID]) error { return c.down }, storage.UserIDLookups)
		cache := New(Config{Store: store, Bytes: 1 << 20})
		defer cache.Close()
		before := cache.directory.Load()
		err := cache.number(t.Context(), users, c.atMost)
		check.That(t, (err != nil) == c.fails && (c.down == nil || errors.Is(err, c.down)), "%s: %v", name, err)
		now := cache.directory.Load()
		check.That(t, c.fails && now == before || !c.fails && now.Len() == 3, "%s: a directory of %d users", name, now.Len())
	}
}

// Of a store with too many users, the first ones are not read again and again.
func TestTooManyUsersAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := oracle.New()
		store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
		users, read := double.Of(store), 0
		double.Before(users, func(context.Context, []storage.ShardQuery[storage.UserID]) error { read++; return nil }, storage.UserIDLookups)
		c := New(Config{Store: store, Bytes: 64 << 20})
		defer c.Close()
		for id := storage.UserID(2 * usersAtOnce); id > 0; id-- { // they occur out of order
			c.directory.Load().Learn([]storage.UserID{id})
		}
		ctx, end := context.WithTimeout(t.Context(), 5*checkEvery)
		defer end()
		c.Number(ctx, users, 1, slog.New(slog.DiscardHandler), nil)
		check.Equal(t, "how often they were read", read, 1)
	})
}

// A new directory makes the cache forget the lists that the old one numbers, also those that are being read, and
// nothing else.
func TestANewDirectoryForgetsLists(t *testing.T) {
	store := oracle.New()
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	c := New(Config{Store: store, Bytes: 1 << 20})
	defer c.Close()
	storage.UserLookups.Read(t.Context(), c, 1)
	storage.PageLookups[storage.Forward].Read(t.Context(), c, storage.PageQuery{Owner: 1, Limit: 3})
	listOf := func(id storage.UserID) key { return key{kind: forwardKind, id: id} }
	must.That(t, kept[*list](c, listOf(1)), "the list is not kept")
	user, _ := c.profiles.begin(profileKey(2))
	following, _ := c.lists[storage.Forward].begin(listOf(2))
	must.OK(t, c.number(t.Context(), store, 2))
	c.profiles.end(c, profileKey(2), user, storage.Result[storage.Profile]{Found: true}, c.profiles.keep)
	c.lists[storage.Forward].end(c, listOf(2), following, storage.Result[*list]{Value: c.makeList(storage.Forward, storage.List{}, 0), Found: true}, c.keepList)
	for id := range storage.UserID(2) {
		check.That(t, kept[*said](c, profileKey(id+1)), "user %d is forgotten", id+1)
		check.That(t, !kept[*list](c, listOf(id+1)), "the list of %d is still there", id+1)
	}
	follow := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
	store.Apply(t.Context(), storage.Forward, []storage.Edge{follow}, storage.IfNewer)
	c.Apply(t.Context(), ChangedRows(storage.Row{Side: storage.Forward, Edge: follow}), false) // of a list that is not there any more
	page := storage.PageLookups[storage.Forward].Read(t.Context(), c, storage.PageQuery{Owner: 1, Limit: 3})[0]
	check.That(t, len(page.Value) == 1, "after a follow it is %+v", page)
}
