package rediscache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/notify"
	"kith/storage/storagetest"
	"kith/storage/storagetest/oracle"
)

// cached is a store whose users, posts and lists are read through a cache, which is notified of every
// write. Two caches take turns, like two gateways that serve the requests of one client.
type cached struct {
	*notify.Store
	caches [2]*Cache
	turn   atomic.Int64
}

func (s *cached) next() *Cache { return s.caches[s.turn.Add(1)%2] }

func (s *cached) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return s.next().Profiles(ctx, ids)
}

func (s *cached) Lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	return s.next().Lists(ctx, side, queries)
}

func (s *cached) Posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	return s.next().Posts(ctx, ids)
}

func (s *cached) wrote(ctx context.Context, w notify.Write) {
	var what []storage.UserChange
	var posts []storage.PostVersion
	for _, row := range w.Rows {
		one := w.Counts[row.Side.Owner(row.Edge.Pair())]
		one.User, one.Forward, one.Inverse = row.Side.Owner(row.Edge.Pair()), row.Side == storage.Forward, row.Side == storage.Inverse
		what = append(what, one)
		if row.Side == storage.FavoriteInbox {
			posts = append(posts, storage.PostVersion{PostID: row.Edge.Pair().PostID()})
		}
	}
	for _, id := range w.Posts {
		posts = append(posts, storage.PostVersion{PostID: id})
	}
	for _, user := range w.All() {
		what = append(what, storage.UserChange{User: user, Forward: true, Inverse: true})
	}
	s.next().Changed(ctx, what, posts...)
}

func TestConformance(t *testing.T) {
	servers := []*testenv.RedisServer{testenv.Redis(t)}
	opened := 0
	storagetest.Run(t, func(t *testing.T) storage.Store {
		opened++
		store := oracle.New()
		own := func(c *Config) { c.Prefix, c.Timeout = fmt.Sprint("kith:", opened), 5*time.Second }
		s := &cached{caches: [2]*Cache{connect(t, store, servers, own), connect(t, store, servers, own)}}
		s.Store = notify.Watch(store, s.wrote)
		return s
	})
}
