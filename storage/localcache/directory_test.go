package localcache

import (
	"context"
	"errors"
	"testing"

	"kith/storage"
	"kith/storage/memory"
)

// brokenLister is a store one of whose shards does not list its users.
type brokenLister struct {
	*memory.Store
	err error
}

func (b brokenLister) UserIDsAfter(ctx context.Context, shard int, after storage.UserID, limit int) ([]storage.UserID, error) {
	ids, err := b.Store.UserIDsAfter(ctx, shard, after, limit)
	return ids, errors.Join(err, b.err)
}

// Users are numbered all or not at all: up to as many as may be, and if they can be read.
func TestADirectoryIsWhole(t *testing.T) {
	store := memory.New()
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}, {ID: 3, Handle: "c"}})
	down := errors.New("the shard is down")
	for name, c := range map[string]struct {
		users  brokenLister
		atMost int
		fails  bool
	}{
		"as many as may be":    {brokenLister{store, nil}, 3, false},
		"one more":             {brokenLister{store, nil}, 2, true},
		"a shard that is down": {brokenLister{store, down}, 3, true},
	} {
		cache := New(Config{Source: store, Rows: store, Bytes: 1 << 20})
		defer cache.Close()
		before := cache.directory.Load()
		err := cache.number(t.Context(), c.users, c.atMost)
		if (err != nil) != c.fails || c.users.err != nil && !errors.Is(err, down) {
			t.Errorf("%s: %v", name, err)
		}
		if now := cache.directory.Load(); c.fails && now != before || !c.fails && now.Len() != 3 {
			t.Errorf("%s: a directory of %d users", name, now.Len())
		}
	}
}
