// Package memory is the reference engine: the contract of package storage in
// the plainest code that keeps it, as an oracle for tests.
//
// It has one shard and keeps everything in maps behind one lock. Every read
// collects and sorts what it needs, so it is slow by design: nothing in it is
// an index that could be wrong. Values are kept as they are given, unchecked.
package memory

import (
	"context"
	"sync"

	"kith/storage"
)

// Store keeps a graph in memory. It is safe for concurrent use; each call sees
// and leaves the store as if it were alone.
//
// A call whose context has ended before it starts does nothing and answers
// every key with the context's error.
type Store struct {
	mu        sync.RWMutex
	users     map[storage.UserID]storage.User
	passwords map[storage.UserID]string // hashes
	handles   map[string]claim
	counts    map[storage.UserID]storage.Counts
	tables    [2]table // by storage.Side
	log       relationLog
	leases    map[string]map[int]lease // kind → slot
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.LogReader = (*Store)(nil)
)

// A table holds the edges of one side: owner → peer → edge.
type table map[storage.UserID]map[storage.UserID]storage.Edge

// New returns an empty store.
func New() *Store {
	return &Store{
		users:     make(map[storage.UserID]storage.User),
		passwords: make(map[storage.UserID]string),
		handles:   make(map[string]claim),
		counts:    make(map[storage.UserID]storage.Counts),
		tables:    [2]table{make(table), make(table)},
		leases:    make(map[string]map[int]lease),
	}
}

// Empty reports whether the store holds no user at all.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.users) == 0, nil
}

// Ping answers for the only shard there is.
func (s *Store) Ping(ctx context.Context) []storage.ShardHealth {
	return []storage.ShardHealth{{Shard: 0, Name: "memory", Err: ctx.Err()}}
}

// Close waits for the calls under way. There is nothing to release.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}
