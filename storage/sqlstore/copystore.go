package sqlstore

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/move"
)

// Checkpoints of a copy and of its original, each with the identity of the other. Without them, writes
// that have gone to one store would be missing in another.
const (
	copyFrom = "copy/from"
	copyTo   = "copy/to"
)

// CopyTo copies the store to another one, which has to be empty or the unfinished copy of this one, while
// this one is in use. At the end, this store no longer takes writes. [move.CopyStore].
func (s *Store) CopyTo(ctx context.Context, to *Store, cfg MoveConfig) (MoveReport, error) {
	if !s.sql.Moves {
		return MoveReport{}, db.ErrStill
	}
	if s.UUID() == to.UUID() {
		return MoveReport{}, fmt.Errorf("%w: it is the same store", storage.ErrLayout)
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
	if empty, err := to.Empty(ctx); err != nil || !empty && !goesOn {
		if err == nil {
			err = fmt.Errorf("%w: the store that is to become the copy has users: of its own, or of a copy that was given up", storage.ErrLayout)
		}
		return MoveReport{}, err
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
