package sqlstore

import (
	"context"
	"fmt"
	"time"

	"kith/storage"
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
	Buckets []storage.BucketRange

	Err error // of [AskShards]: why it does not answer, and its buckets are not known, or why nothing is written to it
}

// ShardOf is the shard that has a user's rows now.
func (s *Store) ShardOf(user storage.UserID) int { return s.shards.Of(user) }

// Map says which shard owns which bucket, now and later.
func (s *Store) Map() *storage.ShardMap { return s.shards }

// Addresses are the DSNs or paths of all shards in order, credentials included.
func (s *Store) Addresses() []string { return s.db.Addresses() }

// Refresh reads which shards there are and what they own. [Store.Watch] does so again and again.
func (s *Store) Refresh(ctx context.Context) error { return s.db.Refresh(ctx) }

// AddShard makes an empty database a shard of the store, see [db.DB.Add].
func (s *Store) AddShard(ctx context.Context, address string) (ordinal int, err error) {
	return s.db.Add(ctx, address)
}

// Readmit lets a shard be written to that has been restored. [db.DB.Readmit]. Buckets that were moving there are served where all their rows
// are.
func (s *Store) Readmit(ctx context.Context, ordinal int) error {
	if err := s.db.Readmit(ctx, ordinal); err != nil {
		return err
	}
	return move.AfterRestore(ctx, s.db, ordinal)
}

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
	shards, claims := s.db.All(), s.db.Claims() // more may be added in between
	for i, n := range shards {
		list = append(list, ShardStatus{Ordinal: i, Name: n.Name, Buckets: bucketsOf(claims[i])})
	}
	return list
}

func bucketsOf(claims []db.Claim) (buckets []storage.BucketRange) {
	for _, c := range claims {
		if c.State == db.Owned || c.State == db.Leaving || c.State == db.Closed {
			buckets = append(buckets, c.BucketRange)
		}
	}
	return buckets
}

// A StoreStatus is what the shards of a store have, and what is under way between them.
type StoreStatus struct {
	Shards []ShardStatus
	Moves  []Move
	Copied bool // see [Store.IsCopied]
}

// AskShards asks every shard of a location what it has. The others answer for themselves while one is down. Shards that were added
// are not known while the first one is.
func AskShards(ctx context.Context, cfg Config) (status StoreStatus, err error) {
	shards, err := db.AskShards(ctx, db.Config{Location: cfg.Location, StatementTimeout: cfg.StatementTimeout})
	if err != nil {
		return status, err
	}
	var claims [][]db.Claim
	for i, n := range shards {
		status.Shards = append(status.Shards, ShardStatus{i, n.Name, bucketsOf(n.Claims), n.Err})
		claims = append(claims, n.Claims)
	}
	status.Moves, status.Copied = move.Moves(claims), move.IsCopied(claims)
	return status, nil
}

// Watch keeps the map fresh until the context is done.
func (s *Store) Watch(ctx context.Context) {
	var of *storage.Assignment
	moving := false
	s.db.Watch(ctx, func() time.Duration {
		if now := s.shards.Now(); now != of {
			of, moving = now, now.Moving()
		}
		if moving {
			return move.LookEveryMoving
		}
		return move.LookEvery
	})
}

// Look makes sure that what is read next is as new as what has been written before, wherever it was written. [Store.Watch] is late after a process
// has stood still: then rows would be read, or missed, where they were before a move. A mover waits for longer than this before others write.
func (s *Store) Look(ctx context.Context) {
	within := move.LookEvery + move.LookEveryMoving
	if s.shards.Now().Moving() {
		within = db.MoverWaits
	}
	s.db.Look(ctx, within)
}

// Grown is closed once the store has more shards than a number.
func (s *Store) Grown(than int) <-chan struct{} { return s.db.Grown(than) }

// rescue ends what waits for a mover that has died.
func (s *Store) rescue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	move.Rescue(ctx, s.db)
}

// Checkpoints of a copy and of its original, each with the identity of the other. Without them, writes
// that have gone to one store would be missing in another.
const (
	copyFrom = "copy/from"
	copyTo   = "copy/to"
)

// CopyTo copies the store to another one, which has to be empty or the unfinished copy of this one, while
// this one is in use. At first, the other one gets some checkpoints. At the end, this store no longer takes writes. [move.CopyStore].
func (s *Store) CopyTo(ctx context.Context, to *Store, cfg MoveConfig, checkpoints ...string) (MoveReport, error) {
	if !s.sql.Moves {
		return MoveReport{}, db.ErrStill
	}
	if err := s.Refresh(ctx); err != nil {
		return MoveReport{}, err
	}
	of, _, err := to.LoadCheckpoint(ctx, copyFrom)
	if err != nil {
		return MoveReport{}, err
	}
	by, _, err := s.LoadCheckpoint(ctx, copyTo)
	if err != nil {
		return MoveReport{}, err
	}
	begun := s.IsCopied()
	goesOn := begun && string(of) == s.UUID() && string(by) == to.UUID()
	if begun && !goesOn {
		return MoveReport{}, fmt.Errorf("%w: the store is being copied to another one: give that up first (kith shards abort)", storage.ErrLayout)
	}
	if empty, err := storage.IsEmpty(ctx, to); err != nil || !empty && !goesOn {
		if err == nil {
			err = fmt.Errorf("%w: the store that is to become the copy has users: of its own, or of a copy that was given up", storage.ErrLayout)
		}
		return MoveReport{}, err
	}
	for _, name := range checkpoints {
		value, found, err := s.LoadCheckpoint(ctx, name)
		if err == nil && found && !begun {
			err = to.SaveCheckpoint(ctx, name, value)
		}
		if err != nil {
			return MoveReport{}, err
		}
	}
	if err := to.SaveCheckpoint(ctx, copyFrom, []byte(s.UUID())); err != nil {
		return MoveReport{}, err
	}
	if err := s.SaveCheckpoint(ctx, copyTo, []byte(to.UUID())); err != nil {
		return MoveReport{}, err
	}
	return move.CopyStore(ctx, s.db, to.db, cfg)
}

// IsCopied reports whether the store is being copied to another one, or has been.
func (s *Store) IsCopied() bool { return move.IsCopied(s.db.Claims()) }

// AbortCopy lets a store that is being copied, or has been copied, be written to again.
func (s *Store) AbortCopy(ctx context.Context) error { return move.AbortCopy(ctx, s.db) }
