package oracle

import (
	"context"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/sides"
)

// WrongFriends implements [sides.Comparer].
func (s *Store) WrongFriends(ctx context.Context, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var wrong []sides.WrongCount
	for _, id := range slices.Sorted(maps.Keys(on(s, shard, s.counts, itself))) {
		if have, are := s.counts[id].Friend, s.countFriends(id); isOf(owners, id) && have != are {
			wrong = append(wrong, sides.WrongCount{User: id, Have: have, Are: are})
		}
	}
	return wrong, nil
}

// RecountFriends implements [sides.Repairer].
func (s *Store) RecountFriends(ctx context.Context, users []storage.UserID) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(users))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range users {
		results[i] = storage.Result[bool]{Value: true, Found: true}
		counts, known := s.counts[id]
		if n := s.countFriends(id); !known || counts.Friend != n {
			if counts.Friend != n {
				counts.Version++
			}
			counts.Friend = n
			s.counts[id] = counts
		}
	}
	return results
}

// countFriends counts the users whom a user follows and who follow it.
func (s *Store) countFriends(id storage.UserID) (n int64) {
	for other := range s.tables[storage.Forward][id] {
		n += s.friends(id, other.peer)
	}
	return n
}
