package oracle

import (
	"context"
	"fmt"
	"time"

	"kith/storage"
	"kith/storage/judge"
)

// CreateUsers implements [storage.Store]. Users are judged one after the other: of two with
// the same id or handle, the first is created. A user that exists is reported as such even if the
// handle asked for belongs to another user.
func (s *Store) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(users))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	for i, user := range users {
		made, err := s.create(user)
		results[i] = storage.Result[bool]{Value: made, Found: err == nil, Err: err}
		if made && states != nil && states[i] != storage.Active {
			s.change.AddStanding(user.ID)
			s.changeState(user.ID, states[i], storage.MicrosOf(time.Now()))
		}
	}
	return results
}

func (s *Store) create(user storage.User) (made bool, err error) {
	if _, exists := s.users[user.ID]; exists {
		return false, nil
	}
	if err := judge.NewUser(user.ID, s.states[user.ID].State); err != nil {
		return false, err
	}
	if s.isTaken(user, storage.MicrosOf(time.Now())) {
		return false, fmt.Errorf("create user %d with handle %q: %w", user.ID, user.Handle, storage.ErrHandleTaken)
	}
	s.insert(user)
	return true, nil
}

// insert makes a user whose handle is free or its own.
func (s *Store) insert(user storage.User) {
	s.users[user.ID] = user
	s.change.AddProfile(user.ID)
	s.handles[user.Handle] = claim{user.ID, user.CreatedAt}
	s.activeOn(user.ID, user.CreatedAt)
	// Edges may have come before their user: their counts stay.
	if _, counted := s.counts[user.ID]; !counted {
		s.counts[user.ID] = storage.Counts{}
	}
}

// Apply implements [storage.EdgeWriter]. The Row of each answer is the row as it was after that
// edge was judged, and so are those in Also.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(edges))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	j := s.judge(storage.Each(edges, storage.Edge.Pair)...)
	for i, edge := range edges {
		results[i] = storage.Result[storage.Changed]{Value: j.Apply(side, edge, rule), Found: true}
	}
	s.save(j)
	for _, r := range results { // those that were there before
		if !r.Value.Changed && r.Value.Row.UpdateTime > 0 {
			s.change.AddRow(side, r.Value.Row)
		}
	}
	return results
}

func (s *Store) raiseVersion(id storage.UserID) {
	counts := s.counts[id]
	counts.Version++
	s.counts[id] = counts
}

// edge is the row of a pair, if there is one.
func (s *Store) edge(side storage.Side, pair storage.Pair) (storage.Edge, bool) {
	edge, exists := s.tables[side][side.Owner(pair)][endOf(side, pair)]
	return edge, exists
}

// row is the row of a pair, or one of type None at time 0, which counts nothing.
func (s *Store) row(side storage.Side, pair storage.Pair) storage.Edge {
	if edge, exists := s.edge(side, pair); exists {
		return edge
	}
	return pair.Edge(storage.None, 0)
}

// friends is what two users add to the owner's count of friends.
func (s *Store) friends(owner, peer storage.UserID) int64 {
	other := end{peer: peer}
	return judge.Counted(s.tables[storage.Forward][owner][other].Type) * judge.Counted(s.tables[storage.Inverse][owner][other].Type)
}
