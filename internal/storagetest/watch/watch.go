// Package watch has tests see what is written through a store, besides what is written past it.
package watch

import (
	"context"

	"kith/storage"
)

// Store is a store whose writes are reported to it, as long as they go through it.
type Store struct {
	storage.Store
	report func(context.Context, storage.Change)
}

// through is the stores that a write goes through, the inner ones first.
type through struct {
	store *Store
	outer *through
}

type throughKey struct{}

// Watch returns a store that calls report with every change of a write through it. What is written to the inner store otherwise, or
// through another Store, is not reported.
func Watch(store storage.Store, report func(context.Context, storage.Change)) *Store {
	store.OnCommit(func(ctx context.Context, c storage.Change) {
		for way, _ := ctx.Value(throughKey{}).(*through); way != nil; way = way.outer {
			way.store.report(ctx, c)
		}
	})
	return &Store{store, report}
}

func (s *Store) on(ctx context.Context) context.Context {
	outer, _ := ctx.Value(throughKey{}).(*through)
	return context.WithValue(ctx, throughKey{}, &through{s, outer})
}

// Apply writes through the store.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	return s.Store.Apply(s.on(ctx), side, edges, rule)
}

// ChangeEdges writes through the store.
func (s *Store) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	return s.Store.ChangeEdges(s.on(ctx), side, user, changes, o)
}

// CreateUsers writes through the store.
func (s *Store) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	return s.Store.CreateUsers(s.on(ctx), users, states...)
}

// Register writes through the store.
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	return s.Store.Register(s.on(ctx), user, passwordHash)
}

// SetPassword writes through the store.
func (s *Store) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	return s.Store.SetPassword(s.on(ctx), id, change)
}

// UpdateProfile writes through the store.
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	return s.Store.UpdateProfile(s.on(ctx), id, change, at)
}

// SetMark writes through the store.
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	return s.Store.SetMark(s.on(ctx), pair, change)
}

// See writes through the store.
func (s *Store) See(ctx context.Context, what storage.Seen, upTo storage.Micros) (bool, error) {
	return s.Store.See(s.on(ctx), what, upTo)
}

// Restore writes through the store.
func (s *Store) Restore(ctx context.Context, rows storage.Restored) []storage.Result[bool] {
	return s.Store.Restore(s.on(ctx), rows)
}

// SetState writes through the store.
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	return s.Store.SetState(s.on(ctx), user, state, at)
}

// Moderate writes through the store.
func (s *Store) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	return s.Store.Moderate(s.on(ctx), e)
}

// EndEdges writes through the store.
func (s *Store) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	return s.Store.EndEdges(s.on(ctx), user, rows, at)
}

// Erase writes through the store.
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	return s.Store.Erase(s.on(ctx), user, at)
}

// Publish writes through the store.
func (s *Store) Publish(ctx context.Context, post storage.PostRow) (storage.Post, bool, error) {
	return s.Store.Publish(s.on(ctx), post)
}

// EditPost writes through the store.
func (s *Store) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	return s.Store.EditPost(s.on(ctx), id, change, at)
}

// AddComment writes through the store.
func (s *Store) AddComment(ctx context.Context, comment storage.Comment) (storage.Comment, bool, error) {
	return s.Store.AddComment(s.on(ctx), comment)
}

// DeleteComment writes through the store.
func (s *Store) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
	return s.Store.DeleteComment(s.on(ctx), id, by)
}

// DeletePost writes through the store.
func (s *Store) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	return s.Store.DeletePost(s.on(ctx), id)
}
