package localcache_test

import (
	"context"
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/events"
)

// TestCountsAtHandAreTaken: after a write of this process its users are not read again, unless
// another process has changed them in between, or more than counts has changed.
func TestCountsAtHandAreTaken(t *testing.T) {
	store, read := counted()
	people(t, store, 3)
	cache := localcache.New(localcache.Config{Store: store, Bytes: 64 << 20})
	defer cache.Close()
	own := watch.Watch(store, func(_ context.Context, w storage.Change) { cache.Apply(context.Background(), w, true) })
	follow := func(by storage.Store, to storage.UserID, kind storage.EdgeType) {
		t.Helper()
		r := by.ChangeEdges(t.Context(), storage.Forward, 1, []storage.EdgeChange{{To: to, Type: kind, At: 9}}, storage.ChangeOptions{Inverse: true})
		must.All(t, r)
	}
	agrees := func(what string, reads int64) {
		t.Helper()
		before := read.calls.Load()
		for _, id := range []storage.UserID{1, 2, 3} {
			check.Equal(t, what, storage.ProfileLookups.Read(t.Context(), cache, id)[0], storage.ProfileLookups.Read(t.Context(), store.Store, id)[0])
		}
		check.Equal(t, what+": users who were read", read.calls.Load()-before, reads)
	}
	agrees("first", 3)
	follow(own, 2, storage.Following)
	agrees("a follow", 0)
	follow(own, 2, storage.None)
	follow(own, 3, storage.Following)
	agrees("two more", 0)
	follow(store, 2, storage.Following) // by another process, without an event so far
	follow(own, 3, storage.None)
	check.Equal(t, "followings, with somebody else between", storage.ProfileLookups.Read(t.Context(), cache, 1)[0].Value.Counts.Following, 1)
	cache.Forget()
	agrees("read again", 3)
	rename := func(by storage.Store, name string) {
		t.Helper()
		_, _, err := by.UpdateProfile(t.Context(), 3, storage.ProfileChange{Name: &name}, 9)
		must.OK(t, err)
	}
	rename(own, "another")
	agrees("a change of the profile", 0)
	rename(store, "by somebody else")
	follow(store, 3, storage.Following)
	follow(store, 3, storage.None)
	bio := "of ours"
	_, _, err := own.UpdateProfile(t.Context(), 3, storage.ProfileChange{Bio: &bio}, 10)
	must.OK(t, err)
	got := storage.ProfileLookups.Read(t.Context(), cache, 3)[0].Value
	check.That(t, got.User.Name == "by somebody else" && got.User.Bio == bio, "with somebody else between: %+v", got)
}

// An event about a change that the cache has applied already, because this process wrote it, makes the cache forget
// nothing. An event about something newer does.
func TestOwnEventsOfUsersForgetNothing(t *testing.T) {
	store, _ := counted()
	people(t, store, 2)
	cache := localcache.New(localcache.Config{Store: store, Bytes: 64 << 20})
	defer cache.Close()
	own := watch.Watch(store, func(_ context.Context, w storage.Change) { cache.Apply(context.Background(), w, true) })
	hub := events.NewHub(nil)
	defer hub.Close()
	go cache.Follow(t.Context(), hub)()
	storage.UserLookups.Read(t.Context(), cache, 1, 2)
	for i, id := range []storage.UserID{1, 1, 2} {
		name := fmt.Sprint("new ", i)
		_, _, err := own.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &name}, 9)
		must.OK(t, err)
	}
	version := storage.CountLookups.Read(t.Context(), cache, 1)[0].Value.Version
	for id, at := range map[storage.UserID]int64{1: version, 2: version + 1} {
		left := storage.UserChange{User: id, What: storage.Whole, Counts: storage.Counts{Version: at}, Before: at}
		hub.Publish(events.Event{Kind: events.UserChanged, User: &left})
	}
	kept := func(id storage.UserID) bool {
		var b storage.Bundle
		asked := storage.UserLookups.Ask(&b, id)
		cache.AtHand(&b)
		return !asked.Open()
	}
	must.Soon(t, "a user of whom a newer version was reported is not kept", func() bool { return !kept(2) })
	check.That(t, kept(1), "a user was forgotten whom the writer had reported")
}
