package rediscache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/internal/testenv"
	"kith/storage"
)

// cached is a store whose users and lists are read through a cache, which is notified of every
// write. Two caches take turns, like two gateways that serve the requests of one client.
type cached struct {
	*watch.Store
	caches [2]*Cache
	turn   atomic.Int64
}

func (s *cached) next() *Cache { return s.caches[s.turn.Add(1)%2] }

func (s *cached) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return storage.ProfileLookups.Read(ctx, s.next(), ids...)
}

func (s *cached) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	return storage.SnapshotLookups[side].Read(ctx, s.next(), queries...)
}

func (s *cached) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	storage.SnapshotLookups.Instead(ctx, b, s.lists)
	s.Store.Bundle(ctx, b)
}

func (s *cached) wrote(ctx context.Context, w storage.Change) {
	s.next().Changed(ctx, w.Users)
}

func TestConformance(t *testing.T) {
	servers := []*testenv.RedisServer{testenv.Redis(t)}
	opened := 0
	storagetest.Run(t, func(t *testing.T) storage.Store {
		opened++
		store := oracle.New()
		own := func(c *Cache) { c.clock.Prefix = fmt.Sprint("kith:", opened) }
		s := &cached{caches: [2]*Cache{connect(t, store, servers, own), connect(t, store, servers, own)}}
		s.Store = watch.Watch(store, s.wrote)
		return s
	})
}
