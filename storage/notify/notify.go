// Package notify tells caches of every write to a store: after its commit, and before
// the writer goes on.
package notify

import (
	"context"

	"kith/storage"
)

// Write is what a write has changed.
type Write struct {
	// Rows are rows of edges as they are now, each on the side that it names: what was
	// carried to one side only is there only. Some may be as they were before.
	Rows []storage.Row
	// Users have been made, erased or changed otherwise than by an edge.
	Users []storage.UserID
}

// Store is a store that tells of its writes.
type Store struct {
	storage.Store
	storage.PackedReader
	tell func(context.Context, Write)
}

// Watch makes a store that tells of every write through it. What is told may be repeated,
// and is told also for a client that has gone.
func Watch(store storage.Store, tell func(context.Context, Write)) *Store {
	return &Store{store, storage.PackedOf(store), tell}
}

func (s *Store) wrote(ctx context.Context, w Write) {
	if len(w.Rows) > 0 || len(w.Users) > 0 {
		s.tell(context.WithoutCancel(ctx), w)
	}
}

// add adds forward rows, and the rows of their other sides where those were written, too.
func (w *Write) add(written []storage.Written) {
	for _, one := range written {
		w.Rows = append(w.Rows, one.Row)
		if one.Inverse {
			w.Rows = append(w.Rows, storage.Row{Side: one.Side.Replica(), Edge: one.Edge})
		}
	}
}

// Apply implements [storage.EdgeWriter]. It tells of rows that were there before, too: the
// writer before may not have lived to.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	results := s.Store.Apply(ctx, side, edges, rule)
	w := Write{Rows: make([]storage.Row, 0, len(results))}
	for _, r := range results {
		if r.Err == nil && r.Value.Row.UpdateTime > 0 { // otherwise there is no such row
			w.Rows = append(w.Rows, storage.Row{Side: side, Edge: r.Value.Row})
			w.add(r.Value.Also)
		}
	}
	s.wrote(ctx, w)
	return results
}

// ChangeEdges implements [storage.EdgeChanger].
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := s.Store.ChangeEdges(ctx, from, changes, o)
	var w Write
	for _, r := range results {
		w.add(r.Value.Written())
	}
	s.wrote(ctx, w)
	return results
}

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	changed, err := s.Store.ChangeRequest(ctx, request, change, o)
	var w Write
	w.add(changed.Written)
	s.wrote(ctx, w)
	return changed, err
}

// CreateUsers implements [storage.UserWriter].
func (s *Store) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	results := s.Store.CreateUsers(ctx, users)
	var w Write
	for i, r := range results {
		if r.Value {
			w.Users = append(w.Users, users[i].ID)
		}
	}
	s.wrote(ctx, w)
	return results
}

// Register implements [storage.AccountStore].
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	err := s.Store.Register(ctx, user, passwordHash)
	if err == nil {
		s.wrote(ctx, Write{Users: []storage.UserID{user.ID}})
	}
	return err
}

// SetPasswordHash implements [storage.AccountStore].
func (s *Store) SetPasswordHash(ctx context.Context, id storage.UserID, hash string, at storage.Micros) error {
	err := s.Store.SetPasswordHash(ctx, id, hash, at)
	if err == nil { // the user's UpdatedAt
		s.wrote(ctx, Write{Users: []storage.UserID{id}})
	}
	return err
}

// UpdateProfile implements [storage.AccountStore].
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, error) {
	user, err := s.Store.UpdateProfile(ctx, id, change, at)
	if err == nil {
		s.wrote(ctx, Write{Users: []storage.UserID{id}})
	}
	return user, err
}

// SetMark implements [storage.MarkWriter].
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, changed, err := s.Store.SetMark(ctx, pair, change)
	if changed {
		s.wrote(ctx, Write{Users: []storage.UserID{pair.From}})
	}
	return mark, changed, err
}

// SetState implements [storage.StateStore].
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	changed, err := s.Store.SetState(ctx, user, state, at)
	if err == nil {
		s.wrote(ctx, Write{Users: []storage.UserID{user}})
	}
	return changed, err
}

// Erase implements [storage.StateStore].
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	err := s.Store.Erase(ctx, user, at)
	if err == nil {
		s.wrote(ctx, Write{Users: []storage.UserID{user}})
	}
	return err
}
