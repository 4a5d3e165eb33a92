package accounts_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// moved is a store whose users move to the first shard once that has been read, and the second one has not.
type moved struct {
	*oracle.Store
	once sync.Once
	read chan struct{}
}

func (s *moved) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.StateChangeLookups.Instead(ctx, b, storage.OneByOne(s.changes))
	s.Store.Bundle(ctx, b)
}

func (s *moved) changes(ctx context.Context, q storage.ShardQuery[storage.StateChange]) ([]storage.StateChange, error) {
	if q.Shard == 1 {
		<-s.read
	}
	list, err := storage.StateChangeLookups.Get(ctx, s.Store, q)
	if q.Shard == 0 {
		s.once.Do(func() {
			s.Move(storage.BucketRange{First: 0, Last: storage.Buckets - 1}, 0)
			close(s.read)
		})
	}
	return list, err
}

// TestWhoIsHiddenWhileBucketsMove is known to a gateway that starts then: each shard says of its own users alone who is.
func TestWhoIsHiddenWhileBucketsMove(t *testing.T) {
	store := &moved{Store: oracle.New(oracle.Placed(storage.NewShardMap(2))), read: make(chan struct{})}
	makeUsers(t, store, 9)
	long := storage.MicrosOf(time.Now().Add(-time.Hour))
	for id := range storage.UserID(9) { // they are on the second shard
		_, err := store.SetState(t.Context(), id+1, storage.Deactivated, long)
		must.OK(t, err)
	}
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	must.OK(t, hidden.Refresh(t.Context()))
	check.Equal(t, "how many are hidden", len(hidden.IDs()), 9)
}

// moving is a store whose buckets move all the time, faster than all changes can be read.
type moving struct {
	*oracle.Store
	epoch int64
}

func (s *moving) Served(ctx context.Context, shard int) (storage.Served, error) {
	s.epoch++
	served, err := s.Store.Served(ctx, shard)
	served.Epoch = s.epoch
	return served, err
}

// TestAStartDoesNotWaitForAllMoves: the next refresh reads again what may have moved.
func TestAStartDoesNotWaitForAllMoves(t *testing.T) {
	store := &moving{Store: oracle.New()}
	makeUsers(t, store, 1)
	_, err := store.SetState(t.Context(), 1, storage.Deactivated, 1)
	must.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	must.OK(t, hidden.Refresh(ctx))
	check.That(t, hidden.Has(1), "a user who has not moved is not known")
	known := store.epoch
	must.OK(t, hidden.Refresh(ctx))
	check.Least(t, "how often the shard is asked what it has, in the next refresh", store.epoch-known, 2)
}

// halfDown is a store whose first shard may not answer.
type halfDown struct {
	*oracle.Store
	down bool
}

func (s *halfDown) Served(ctx context.Context, shard int) (storage.Served, error) {
	if s.down && shard == 0 {
		return storage.Served{}, storage.ErrUnavailable
	}
	return s.Store.Served(ctx, shard)
}

// TestWhoIsHiddenWhileAShardIsDown is known of the other shards, also if everything has to be read again.
func TestWhoIsHiddenWhileAShardIsDown(t *testing.T) {
	store := &halfDown{Store: oracle.New(oracle.Placed(storage.NewShardMap(2)))}
	makeUsers(t, store, 9)
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	store.down = true
	_, err := store.SetState(t.Context(), 9, storage.Deactivated, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	check.Is(t, "a refresh", hidden.Refresh(t.Context()), storage.ErrUnavailable)
	check.That(t, hidden.Has(9), "nobody is hidden")
}
