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
	s.activeOn(user.ID, user.CreatedAt)
	// Edges may have come before their user: what they counted stays.
	if _, counted := s.counts[user.ID]; !counted {
		s.counts[user.ID] = storage.Counts{}
	}
}

// Apply implements [storage.EdgeWriter]. The Row of each answer is the row as it
// was when that edge had been judged, and so are those in Also.
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
	written []place // each once
	seen    map[place]bool
}

func (s *Store) writer() *writer { return &writer{store: s, seen: make(map[place]bool)} }

// A place is where an edge is kept.
type place struct {
	side storage.Side
	pair storage.Pair
}

func (p place) owner() storage.UserID { return p.side.Owner(p.pair) }

// apply judges one edge and does what follows from it.
func (w *writer) apply(side storage.Side, edge storage.Edge, rule storage.Rule) storage.Applied {
	old, exists := w.store.edge(side, edge.Pair())
	if exists && (rule == storage.IfAbsent || edge.UpdateTime <= old.UpdateTime) {
		return storage.Applied{Row: old, Also: w.again(side, edge)}
	}
	if side == storage.Forward && edge.Type == storage.Following && w.store.isBlockedBy(edge.From, edge.To) {
		return storage.Applied{Row: w.store.row(side, edge.Pair())}
	}
	w.put(side, edge)
	return storage.Applied{Row: edge, Changed: true, Also: w.follow(side, edge)}
}

// put writes an edge, moves the counts of its owner, and ends what lies beside the
// row before.
func (w *writer) put(side storage.Side, edge storage.Edge) {
	at, s := place{side, edge.Pair()}, w.store
	owner, peer := at.owner(), side.Peer(at.pair)
	counts := s.counts[owner]
	counts.Following -= s.counted(storage.Forward, owner, peer)
	counts.Follower -= s.counted(storage.Inverse, owner, peer)
	counts.Friend -= s.friends(owner, peer)
	old := s.row(side, at.pair)
	if s.tables[side][owner] == nil {
		s.tables[side][owner] = make(map[storage.UserID]storage.Edge)
	}
	s.tables[side][owner][peer] = edge
	counts.Following += s.counted(storage.Forward, owner, peer)
	counts.Follower += s.counted(storage.Inverse, owner, peer)
	counts.Friend += s.friends(owner, peer)
	s.counts[owner] = counts

	switch {
	case side == storage.Requests:
		delete(s.messages, at.pair)
	case side == storage.Forward && old.Type == storage.Following && edge.Type != storage.Following:
		s.endMark(at.pair)
	case side == storage.Inverse && old.Type != storage.Following && edge.Type == storage.Following:
		s.activeOn(owner, edge.UpdateTime)
	}
	if !w.seen[at] {
		w.seen[at] = true
		w.written = append(w.written, at)
	}
}

// commit does what comes once with all that was written: versions rise, and the
// rows are logged.
func (w *writer) commit() {
	raised := make(map[storage.UserID]bool)
	for _, at := range w.written {
		if !raised[at.owner()] {
			raised[at.owner()] = true
			w.store.raiseVersion(at.owner())
		}
		w.store.log.add(at.side, w.store.row(at.side, at.pair))
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

// row is the row of a pair, or one of type None at time 0 that counts nothing.
func (s *Store) row(side storage.Side, pair storage.Pair) storage.Edge {
	if edge, exists := s.edge(side, pair); exists {
		return edge
	}
	return storage.Edge{From: pair.From, To: pair.To}
}

// counted is what the edge between an owner and a peer adds to the owner's count on
// a side.
func (s *Store) counted(side storage.Side, owner, peer storage.UserID) int64 {
	return counted(s.tables[side][owner][peer])
}

func counted(edge storage.Edge) int64 {
	if edge.Type == storage.Following {
		return 1
	}
	return 0
}

// friends is what two users add to the owner's count of friends.
func (s *Store) friends(owner, peer storage.UserID) int64 {
	return s.counted(storage.Forward, owner, peer) * s.counted(storage.Inverse, owner, peer)
}
