package memory

import (
	"context"
	"fmt"

	"kith/storage"
)

// CreateUsers implements [storage.UserWriter]. Users are judged one after the
// other: of two with one id or one handle the first is made. A user that exists
// is reported as such even if the handle asked for belongs to somebody else.
func (s *Store) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(users))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, user := range users {
		made, err := s.create(user)
		results[i] = storage.Result[bool]{Value: made, Found: err == nil, Err: err}
	}
	return results
}

func (s *Store) create(user storage.User) (made bool, err error) {
	if _, exists := s.users[user.ID]; exists {
		return false, nil
	}
	if _, taken := s.handles[user.Handle]; taken {
		return false, fmt.Errorf("create user %d with handle %q: %w", user.ID, user.Handle, storage.ErrHandleTaken)
	}
	s.users[user.ID] = user
	s.handles[user.Handle] = user.ID
	// Edges may have come before their user: what they counted stays.
	if _, counted := s.counts[user.ID]; !counted {
		s.counts[user.ID] = storage.Counts{}
	}
	return true, nil
}

// Apply implements [storage.EdgeWriter]. The Row of each answer is the row as it
// was when that edge had been judged.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	results := make([]storage.Result[storage.Applied], len(edges))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, edge := range edges {
		results[i] = storage.Result[storage.Applied]{Value: s.apply(side, edge, rule), Found: true}
	}
	return results
}

func (s *Store) apply(side storage.Side, edge storage.Edge, rule storage.Rule) storage.Applied {
	owner, peer := side.Owner(edge.Pair()), side.Peer(edge.Pair())
	old, exists := s.tables[side][owner][peer]
	if exists && (rule == storage.IfAbsent || edge.UpdateTime <= old.UpdateTime) {
		return storage.Applied{Row: old}
	}
	if s.tables[side][owner] == nil {
		s.tables[side][owner] = make(map[storage.UserID]storage.Edge)
	}
	s.tables[side][owner][peer] = edge
	// A missing row reads as the zero Edge, whose type counts nothing.
	s.count(side, owner, counted(edge)-counted(old))
	return storage.Applied{Row: edge, Changed: true}
}

// count moves one of the owner's counts and raises the version.
func (s *Store) count(side storage.Side, owner storage.UserID, difference int64) {
	counts := s.counts[owner]
	if side == storage.Inverse {
		counts.Follower += difference
	} else {
		counts.Following += difference
	}
	counts.Version++
	s.counts[owner] = counts
}

// counted is what an edge adds to its owner's count.
func counted(edge storage.Edge) int64 {
	if edge.Type == storage.Following {
		return 1
	}
	return 0
}
