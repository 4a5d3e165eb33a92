package localcache_test

import (
	"context"
	"testing"

	"kith/storage"
	"kith/storage/localcache"
	"kith/storage/memory"
	"kith/storage/notify"
)

// TestCountsAtHandAreTaken: after a write of this process its users are not read again, unless
// another process has changed them in between, or more than counts has changed.
func TestCountsAtHandAreTaken(t *testing.T) {
	store := &counted{Store: memory.New()}
	people(t, store, 3)
	cache := localcache.New(localcache.Config{Source: store, Rows: store, Bytes: 64 << 20})
	defer cache.Close()
	own := notify.Watch(store, func(_ context.Context, w notify.Write) { cache.Wrote(w.Rows, w.All(), w.Counts) })
	follow := func(by storage.EdgeChanger, to storage.UserID, kind storage.EdgeType) {
		t.Helper()
		if r := by.ChangeEdges(t.Context(), 1, []storage.EdgeChange{{To: to, Type: kind, At: 9}}, storage.ChangeOptions{Inverse: true}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
	}
	agrees := func(what string, reads int64) {
		t.Helper()
		before := store.calls.Load()
		for _, id := range []storage.UserID{1, 2, 3} {
			got, want := cache.Profiles(t.Context(), []storage.UserID{id})[0], store.Store.Profiles(t.Context(), []storage.UserID{id})[0]
			if got != want {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
		if n := store.calls.Load() - before; n != reads {
			t.Errorf("%s: %d users were read, want %d", what, n, reads)
		}
	}
	agrees("first", 3)
	follow(own, 2, storage.Following)
	agrees("a follow", 0)
	follow(own, 2, storage.None)
	follow(own, 3, storage.Following)
	agrees("two more", 0)
	follow(store, 2, storage.Following) // by somebody else, of whom nothing is heard yet
	follow(own, 3, storage.None)
	if got := cache.Profiles(t.Context(), []storage.UserID{1})[0].Value.Counts; got.Following != 1 {
		t.Errorf("with somebody else between: %+v", got)
	}
	name := "another"
	if _, err := own.UpdateProfile(t.Context(), 3, storage.ProfileChange{Name: &name}, 9); err != nil {
		t.Fatal(err)
	}
	if got := cache.Profiles(t.Context(), []storage.UserID{3})[0].Value.User; got.Name != name {
		t.Errorf("after a change of the profile: %+v", got)
	}
}
