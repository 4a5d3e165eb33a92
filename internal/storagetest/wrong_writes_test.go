package storagetest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

type handleForAll struct{ *oracle.Store }

func (s handleForAll) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	results := s.Store.CreateUsers(ctx, users)
	for i := range results {
		if results[i].Err != nil {
			results[i] = storage.Result[bool]{Value: true, Found: true}
		}
	}
	return results
}

type overwrites struct {
	*oracle.Store
	mu   sync.Mutex
	last map[storage.UserID]storage.User
}

func newOverwrites(s *oracle.Store) storage.Store {
	return &overwrites{Store: s, last: map[storage.UserID]storage.User{}}
}

func (s *overwrites) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	results := s.Store.CreateUsers(ctx, users)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, user := range users {
		if results[i].Err == nil {
			s.last[user.ID] = user
		}
	}
	return results
}

func (s *overwrites) users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := storage.UserLookups.Read(ctx, s.Store, ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		results[i].Value = s.last[id]
	}
	return results
}

func (s *overwrites) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.UserLookups.Instead(ctx, b, s.users)
	s.Store.Bundle(ctx, b)
}

// miscounts adds to the counts what a rule computes from every call to Apply.
type miscounts struct {
	*oracle.Store
	rule  func(edges []storage.Edge, results []storage.Result[storage.Changed], i int) int64
	mu    sync.Mutex
	extra [len(storage.Sides)]map[storage.UserID]int64
}

type miscountRule = func(edges []storage.Edge, results []storage.Result[storage.Changed], i int) int64

func newMiscounts(s *oracle.Store, rule miscountRule) storage.Store {
	return &miscounts{Store: s, rule: rule, extra: [...]map[storage.UserID]int64{{}, {}, {}, {}}}
}

func countBlocks(edges []storage.Edge, results []storage.Result[storage.Changed], i int) int64 {
	if results[i].Value.Changed && edges[i].Type == storage.Blocking {
		return 1
	}
	return 0
}

func countTwice(edges []storage.Edge, _ []storage.Result[storage.Changed], i int) int64 {
	if slices.Contains(edges[:i], edges[i]) {
		return 1
	}
	return 0
}

func countTombstones(edges []storage.Edge, results []storage.Result[storage.Changed], i int) int64 {
	if results[i].Value.Changed && edges[i].Type == storage.None {
		return -1
	}
	return 0
}

func (s *miscounts) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := s.Store.Apply(ctx, side, edges, rule)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range edges {
		s.extra[side][side.Owner(e.Pair())] += s.rule(edges, results, i)
	}
	return results
}

func (s *miscounts) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	results := storage.CountLookups.Read(ctx, s.Store, ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		results[i].Value.Following += s.extra[storage.Forward][id]
		results[i].Value.Follower += s.extra[storage.Inverse][id]
	}
	return results
}

func (s *miscounts) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

type versionRises struct{ *counting }

func (s versionRises) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	for _, e := range edges {
		s.add(side.Owner(e.Pair()), 1)
	}
	return s.Store.Apply(ctx, side, edges, rule)
}

// unlockedCounts computes differences from rows that it read before it wrote.
type unlockedCounts struct{ *miscounts }

func newUnlockedCounts(s *oracle.Store) storage.Store {
	none := func([]storage.Edge, []storage.Result[storage.Changed], int) int64 { return 0 }
	return unlockedCounts{newMiscounts(s, none).(*miscounts)}
}

func (s unlockedCounts) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(edges))
	for i, e := range edges {
		one := []storage.Edge{e}
		before := storage.EdgeLookups[side].Read(ctx, s, e.Pair())[0].Value
		// Others may write now, as between two statements.
		time.Sleep(100 * time.Microsecond)
		s.mu.Lock()
		there := storage.EdgeLookups[side].Read(ctx, s, e.Pair())[0].Value
		results[i] = s.Store.Apply(ctx, side, one, rule)[0]
		if results[i].Value.Changed {
			s.extra[side][side.Owner(e.Pair())] += counted(there) - counted(before)
		}
		s.mu.Unlock()
	}
	return results
}

func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}

type unlockedClaim struct{ *oracle.Store }

func (s unlockedClaim) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	handles := make([]string, len(users))
	for i, user := range users {
		handles[i] = user.Handle
	}
	before := storage.HandleLookups.Read(ctx, s, handles...)
	// Others may claim now, as between two statements.
	time.Sleep(time.Millisecond)
	results := s.Store.CreateUsers(ctx, users)
	for i := range results {
		if results[i].Err != nil && !before[i].Found {
			results[i] = storage.Result[bool]{Value: true, Found: true}
		}
	}
	return results
}
