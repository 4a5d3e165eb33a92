// Package double makes the stores of tests in which a few methods do something else.
package double

import (
	"context"
	"reflect"

	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/contents"
	"kith/storage/sides"
)

// Store is the reference engine, except for the methods that are replaced. One type serves all tests, because the compiler has to write over a
// hundred methods for each type that embeds a store.
type Store struct {
	*oracle.Store
	Instead Methods
}

// Methods are those that some test replaces. At first they are the engine's.
type Methods struct {
	Bundle func(context.Context, *storage.Bundle)
	AtHand func(*storage.Bundle)

	CreateUsers   func(context.Context, []storage.User, ...storage.UserState) []storage.Result[bool]
	Register      func(context.Context, storage.User, string) error
	SetPassword   func(context.Context, storage.UserID, storage.PasswordChange) (storage.Password, error)
	UpdateProfile func(context.Context, storage.UserID, storage.ProfileChange, storage.Micros) (storage.User, bool, error)
	SetState      func(context.Context, storage.UserID, storage.UserState, storage.Micros) (bool, error)
	Erase         func(context.Context, storage.UserID, storage.Micros) error
	MarkActive    func(context.Context, []storage.UserID, storage.Day) error

	LinkIdentity   func(context.Context, storage.Identity, storage.UserID, storage.Micros) error
	UnlinkIdentity func(context.Context, storage.Identity, storage.UserID) (bool, error)

	Apply       func(context.Context, storage.Side, []storage.Edge, storage.Rule) []storage.Result[storage.Changed]
	ChangeEdges func(context.Context, storage.Side, storage.UserID, []storage.EdgeChange, storage.ChangeOptions) []storage.Result[storage.Changed]
	EndEdges    func(context.Context, storage.UserID, []storage.Row, storage.Micros) []storage.Result[storage.Edge]
	SetMark     func(context.Context, storage.Pair, storage.MarkChange) (storage.EdgeMark, bool, error)
	See         func(context.Context, storage.Seen, storage.Micros) (bool, error)

	Publish       func(context.Context, storage.PostRow) (storage.Post, bool, error)
	EditPost      func(context.Context, storage.PostID, storage.PostChange, storage.Micros) (storage.Post, bool, error)
	DeletePost    func(context.Context, storage.PostID) (bool, error)
	AddComment    func(context.Context, storage.Comment) (storage.Comment, bool, error)
	DeleteComment func(context.Context, storage.CommentID, storage.UserID) (storage.PostID, error)

	CreateList func(context.Context, storage.UserList) (storage.UserList, bool, error)
	UpdateList func(context.Context, storage.ListID, storage.ListChange) (storage.UserList, bool, error)
	Moderate   func(context.Context, storage.ModerationEntry) (storage.ModerationEntry, bool, error)
	Restore    func(context.Context, storage.Restored) []storage.Result[bool]

	Lease            func(context.Context, string, string, int, storage.Micros, storage.Micros) (int, error)
	Release          func(context.Context, string, string, storage.Micros) error
	Holders          func(context.Context, string) (map[string]storage.Micros, error)
	SaveCheckpoint   func(context.Context, string, []byte) error
	LoadCheckpoint   func(context.Context, string) ([]byte, bool, error)
	DeleteCheckpoint func(context.Context, string) error

	ReadLog   func(context.Context, int, int64, int) ([]storage.LogEntry, error)
	ReadShard func(context.Context, int, func(contents.Moment) error) error

	NextOwner        func(context.Context, int, storage.UserID, int) (storage.UserID, bool, error)
	OwnerOfRow       func(context.Context, storage.Side, int, storage.UserID, int) (storage.UserID, bool, error)
	Digests          func(context.Context, storage.Side, int, sides.OwnerRange, sides.Cut, storage.Choice) (map[int]sides.Digest, error)
	OwnerDigests     func(context.Context, storage.Side, int, sides.OwnerRange) (map[storage.UserID]sides.Digest, error)
	GroupRows        func(context.Context, storage.Side, int, sides.OwnerRange, sides.Cut, storage.Choice, func(storage.Edge)) error
	ForbiddenFollows func(context.Context, int, sides.OwnerRange) ([]storage.Pair, error)
	WrongItemCounts  func(context.Context, storage.Side, int, sides.OwnerRange) ([]sides.WrongCount, error)
	RepairInverse    func(context.Context, []sides.Repair) []storage.Result[storage.Changed]
	RecountFriends   func(context.Context, []storage.UserID) []storage.Result[bool]
}

// Of returns a double of an engine, with which it shares what is stored.
func Of(s *oracle.Store) *Store {
	w := &Store{Store: s}
	methods, engine := reflect.ValueOf(&w.Instead).Elem(), reflect.ValueOf(s)
	for i := range methods.NumField() {
		methods.Field(i).Set(engine.MethodByName(methods.Type().Field(i).Name))
	}
	return w
}

func (s *Store) Bundle(ctx context.Context, b *storage.Bundle) { s.Instead.Bundle(ctx, b) }
func (s *Store) AtHand(b *storage.Bundle)                      { s.Instead.AtHand(b) }

func (s *Store) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	return s.Instead.CreateUsers(ctx, users, states...)
}
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	return s.Instead.Register(ctx, user, passwordHash)
}
func (s *Store) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	return s.Instead.SetPassword(ctx, id, change)
}
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	return s.Instead.UpdateProfile(ctx, id, change, at)
}
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	return s.Instead.SetState(ctx, user, state, at)
}
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	return s.Instead.Erase(ctx, user, at)
}
func (s *Store) MarkActive(ctx context.Context, users []storage.UserID, day storage.Day) error {
	return s.Instead.MarkActive(ctx, users, day)
}

func (s *Store) LinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID, at storage.Micros) error {
	return s.Instead.LinkIdentity(ctx, identity, user, at)
}
func (s *Store) UnlinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID) (bool, error) {
	return s.Instead.UnlinkIdentity(ctx, identity, user)
}

func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	return s.Instead.Apply(ctx, side, edges, rule)
}
func (s *Store) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	return s.Instead.ChangeEdges(ctx, side, user, changes, o)
}
func (s *Store) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	return s.Instead.EndEdges(ctx, user, rows, at)
}
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	return s.Instead.SetMark(ctx, pair, change)
}
func (s *Store) See(ctx context.Context, what storage.Seen, upTo storage.Micros) (bool, error) {
	return s.Instead.See(ctx, what, upTo)
}

func (s *Store) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	return s.Instead.Publish(ctx, n)
}
func (s *Store) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	return s.Instead.EditPost(ctx, id, change, at)
}
func (s *Store) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	return s.Instead.DeletePost(ctx, id)
}
func (s *Store) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	return s.Instead.AddComment(ctx, n)
}
func (s *Store) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
	return s.Instead.DeleteComment(ctx, id, by)
}

func (s *Store) CreateList(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
	return s.Instead.CreateList(ctx, list)
}
func (s *Store) UpdateList(ctx context.Context, id storage.ListID, change storage.ListChange) (storage.UserList, bool, error) {
	return s.Instead.UpdateList(ctx, id, change)
}
func (s *Store) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	return s.Instead.Moderate(ctx, e)
}
func (s *Store) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	return s.Instead.Restore(ctx, r)
}

func (s *Store) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	return s.Instead.Lease(ctx, kind, owner, slots, now, until)
}
func (s *Store) Release(ctx context.Context, kind, owner string, until storage.Micros) error {
	return s.Instead.Release(ctx, kind, owner, until)
}
func (s *Store) Holders(ctx context.Context, kind string) (map[string]storage.Micros, error) {
	return s.Instead.Holders(ctx, kind)
}
func (s *Store) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	return s.Instead.SaveCheckpoint(ctx, name, value)
}
func (s *Store) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	return s.Instead.LoadCheckpoint(ctx, name)
}
func (s *Store) DeleteCheckpoint(ctx context.Context, name string) error {
	return s.Instead.DeleteCheckpoint(ctx, name)
}

func (s *Store) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	return s.Instead.ReadLog(ctx, shard, after, limit)
}
func (s *Store) ReadShard(ctx context.Context, shard int, read func(contents.Moment) error) error {
	return s.Instead.ReadShard(ctx, shard, read)
}

func (s *Store) NextOwner(ctx context.Context, shard int, after storage.UserID, users int) (storage.UserID, bool, error) {
	return s.Instead.NextOwner(ctx, shard, after, users)
}
func (s *Store) OwnerOfRow(ctx context.Context, side storage.Side, shard int, after storage.UserID, rows int) (storage.UserID, bool, error) {
	return s.Instead.OwnerOfRow(ctx, side, shard, after, rows)
}
func (s *Store) Digests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
	return s.Instead.Digests(ctx, side, shard, owners, cut, classes)
}
func (s *Store) OwnerDigests(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) (map[storage.UserID]sides.Digest, error) {
	return s.Instead.OwnerDigests(ctx, side, shard, owners)
}
func (s *Store) GroupRows(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) error {
	return s.Instead.GroupRows(ctx, side, shard, owners, cut, groups, row)
}
func (s *Store) ForbiddenFollows(ctx context.Context, shard int, owners sides.OwnerRange) ([]storage.Pair, error) {
	return s.Instead.ForbiddenFollows(ctx, shard, owners)
}
func (s *Store) WrongItemCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	return s.Instead.WrongItemCounts(ctx, side, shard, owners)
}
func (s *Store) RepairInverse(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
	return s.Instead.RepairInverse(ctx, repairs)
}
func (s *Store) RecountFriends(ctx context.Context, users []storage.UserID) []storage.Result[bool] {
	return s.Instead.RecountFriends(ctx, users)
}
