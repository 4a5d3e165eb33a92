package sqlstore

import (
	"context"
	"time"

	"kith/storage"
	"kith/storage/shard"
	"kith/storage/sleep"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/move"
)

// A Move is buckets that go from one shard to another.
type Move = move.Plan

// MoveConfig says how to move.
type MoveConfig = move.Config

// MoveProgress is how far a move is.
type MoveProgress = move.Progress

// MoveReport describes a move that has ended.
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

// Admitted returns an error if a shard has been restored and [Store.Readmit] has not been called since. [db.ErrRestored].
func (s *Store) Admitted(ctx context.Context, ordinal int) error { return s.db.Admitted(ctx, ordinal) }

// Readmit lets a shard be written to that has been restored. [db.DB.Readmit].
func (s *Store) Readmit(ctx context.Context, ordinal int) error { return s.db.Readmit(ctx, ordinal) }

// Move moves buckets, or continues a move that was interrupted. [move.Run].
func (s *Store) Move(ctx context.Context, plan Move, cfg MoveConfig) (MoveReport, error) {
	return move.Run(ctx, s.db, plan, cfg)
}

// ExpectMove estimates how much a move copies.
func (s *Store) ExpectMove(ctx context.Context, plan Move) (move.Expected, error) {
	return move.Expect(ctx, s.db, plan)
}

// AbortMove undoes a move that has not been decided yet.
func (s *Store) AbortMove(ctx context.Context, plan Move, cfg MoveConfig) error {
	return move.Abort(ctx, s.db, plan, cfg)
}

// Moves are the moves that have begun and not ended.
func (s *Store) Moves() []Move { return move.Moves(s.db.Claims()) }

// ShardsStatus returns what every shard has, in the order of their ordinals.
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
