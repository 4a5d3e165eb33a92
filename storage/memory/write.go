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
	if held, claimed := s.handles[user.Handle]; claimed && held.owner != user.ID {
		return false, fmt.Errorf("create user %d with handle %q: %w", user.ID, user.Handle, storage.ErrHandleTaken)
	}
	s.insert(user)
	return true, nil
}

// insert makes a user whose handle is free or its own.
func (s *Store) insert(user storage.User) {
	s.users[user.ID] = user
	s.handles[user.Handle] = claim{user.ID, user.CreatedAt}
	// Edges may have come before their user: what they counted stays.
	if _, counted := s.counts[user.ID]; !counted {
		s.counts[user.ID] = storage.Counts{}
	}
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
	w := s.writer()
	for i, edge := range edges {
		results[i] = storage.Result[storage.Applied]{Value: w.apply(side, edge, rule), Found: true}
	}
	w.commit()
	return results
}

// A writer is one call that writes edges, under the lock.
type writer struct {
	store   *Store
	written []row // each once
	seen    map[row]bool
}

func (s *Store) writer() *writer { return &writer{store: s, seen: make(map[row]bool)} }

// A row is the place of an edge in a table.
type row struct {
	side storage.Side
	pair storage.Pair
}

func (r row) owner() storage.UserID { return r.side.Owner(r.pair) }

func (w *writer) apply(side storage.Side, edge storage.Edge, rule storage.Rule) storage.Applied {
	old, exists := w.store.edge(side, edge.Pair())
	if exists && (rule == storage.IfAbsent || edge.UpdateTime <= old.UpdateTime) {
		return storage.Applied{Row: old}
	}
	w.put(side, edge)
	return storage.Applied{Row: edge, Changed: true}
}

// put writes an edge and moves the count of its owner.
func (w *writer) put(side storage.Side, edge storage.Edge) {
	r, s := row{side, edge.Pair()}, w.store
	// A missing row reads as the zero Edge, whose type counts nothing.
	old, _ := s.edge(side, r.pair)
	if s.tables[side][r.owner()] == nil {
		s.tables[side][r.owner()] = make(map[storage.UserID]storage.Edge)
	}
	s.tables[side][r.owner()][side.Peer(r.pair)] = edge
	counts := s.counts[r.owner()]
	if side == storage.Inverse {
		counts.Follower += counted(edge) - counted(old)
	} else {
		counts.Following += counted(edge) - counted(old)
	}
	s.counts[r.owner()] = counts
	if !w.seen[r] {
		w.seen[r] = true
		w.written = append(w.written, r)
	}
}

// commit does what comes once with all that was written: versions rise, and the
// rows are logged.
func (w *writer) commit() {
	raised := make(map[storage.UserID]bool)
	for _, r := range w.written {
		if !raised[r.owner()] {
			raised[r.owner()] = true
			w.store.raiseVersion(r.owner())
		}
		edge, _ := w.store.edge(r.side, r.pair)
		w.store.log.add(r.side, edge)
	}
}

func (s *Store) raiseVersion(id storage.UserID) {
	counts := s.counts[id]
	counts.Version++
	s.counts[id] = counts
}

// edge is the row of a pair, if there is one.
func (s *Store) edge(side storage.Side, pair storage.Pair) (storage.Edge, bool) {
	edge, exists := s.tables[side][side.Owner(pair)][side.Peer(pair)]
	return edge, exists
}

// counted is what an edge adds to its owner's count.
func counted(edge storage.Edge) int64 {
	if edge.Type == storage.Following {
		return 1
	}
	return 0
}
