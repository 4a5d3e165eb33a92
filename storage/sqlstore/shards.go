package sqlstore

import (
	"context"
	"fmt"
	"time"

	"kith/internal/sleep"
	"kith/storage"
	"kith/storage/shard"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/move"
)

// A Move is buckets that go from one shard to another.
type Move = move.Plan

// MoveConfig says how to move.
type MoveConfig = move.Config

// MoveProgress is how far a move is.
type MoveProgress = move.Progress

// MoveReport tells of a move that has ended.
type MoveReport = move.Report

// ShardStatus is what a shard has.
type ShardStatus struct {
	Ordinal int
	Name    string // server and database, or file
	Buckets []shard.Range
}

// ShardOf is the shard that has a user's rows now.
func (s *Store) ShardOf(user storage.UserID) int { return s.shards.Of(user) }

// Map says which shard owns which bucket, now and later.
func (s *Store) Map() *shard.Map { return s.shards }

// Addresses are the DSNs or paths of all shards in order, credentials included.
func (s *Store) Addresses() []string { return s.db.Addresses() }

// Refresh reads which shards there are and what they own. [Store.Watch] does so again and again.
func (s *Store) Refresh(ctx context.Context) error { return s.db.Refresh(ctx) }

// AddShard makes an empty database a shard of the store, see [db.DB.Add].
func (s *Store) AddShard(ctx context.Context, address string) (ordinal int, err error) {
	return s.db.Add(ctx, address)
}

// Move moves buckets, or goes on with a move that was cut off. [move.Run].
func (s *Store) Move(ctx context.Context, plan Move, cfg MoveConfig) (MoveReport, error) {
	return move.Run(ctx, s.db, plan, cfg)
}

// ExpectMove estimates how much a move copies.
func (s *Store) ExpectMove(ctx context.Context, plan Move) (move.Expected, error) {
	return move.Expect(ctx, s.db, plan)
}

// AbortMove takes back a move that has not been decided yet.
func (s *Store) AbortMove(ctx context.Context, plan Move, cfg MoveConfig) error {
	return move.Abort(ctx, s.db, plan, cfg)
}

// CopyTo copies the store to another one, which has to be empty or the unfinished copy of this one, while
// this one is in use. In the end this one takes no writes any more. [move.CopyStore].
func (s *Store) CopyTo(ctx context.Context, to *Store, cfg MoveConfig) (MoveReport, error) {
	if !s.sql.Moves {
		return MoveReport{}, db.ErrStill
	}
	if s.UUID() == to.UUID() {
		return MoveReport{}, fmt.Errorf("%w: it is the same store", storage.ErrLayout)
	}
	const name = "copy/from" // a checkpoint of the copy
	of, found, err := to.LoadCheckpoint(ctx, name)
	if err != nil {
		return MoveReport{}, err
	}
	empty, err := to.Empty(ctx)
	switch {
	case err != nil:
		return MoveReport{}, err
	case !found && !empty, found && string(of) != s.UUID():
		return MoveReport{}, fmt.Errorf("%w: the store that is to become the copy has users of its own", storage.ErrLayout)
	}
	if err := to.SaveCheckpoint(ctx, name, []byte(s.UUID())); err != nil {
		return MoveReport{}, err
	}
	return move.CopyStore(ctx, s.db, to.db, cfg)
}

// IsCopied reports whether the store is being copied to another one, or has been.
func (s *Store) IsCopied() bool { return move.IsCopied(s.db.Claims()) }

// AbortCopy lets the store be written to again that is being copied, or has been.
func (s *Store) AbortCopy(ctx context.Context) error { return move.AbortCopy(ctx, s.db) }

// Moves are the moves that have been begun and not ended.
func (s *Store) Moves() []Move { return move.Moves(s.db.Claims()) }

// ShardsStatus tells what every shard has, in the order of their ordinals.
func (s *Store) ShardsStatus() []ShardStatus {
	var list []ShardStatus
	claims := s.db.Claims()
	for i, n := range s.db.All() {
		status := ShardStatus{Ordinal: i, Name: n.Name}
		for _, c := range claims[i] {
			if c.State == db.Owned || c.State == db.Leaving || c.State == db.Closed {
				status.Buckets = append(status.Buckets, c.Range)
			}
		}
		list = append(list, status)
	}
	return list
}

// Watch keeps the map fresh until the context is done.
func (s *Store) Watch(ctx context.Context) {
	for {
		every := move.LookEvery
		if s.shards.Now().Moving() {
			every = move.LookEveryMoving
		}
		if sleep.For(ctx, every) != nil {
			return
		}
		_ = s.db.Refresh(ctx) // a shard that does not answer is reported by its look-ups
	}
}

// Grown is closed once the store has more shards than a number.
func (s *Store) Grown(than int) <-chan struct{} { return s.db.Grown(than) }

// rescue ends what waits for a mover that has died.
func (s *Store) rescue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	move.Rescue(ctx, s.db)
}
