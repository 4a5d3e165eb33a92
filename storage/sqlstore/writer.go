package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A writer is one transaction on one shard.
type writer struct {
	*db.Tx
	store *Store

	packed map[storage.UserID]int64 // the flags of the owners locked so far, where they have any
}

// transact runs a write on one shard as one transaction, see [db.DB.Transact].
func (s *Store) transact(ctx context.Context, what string, shard int, write func(*writer) error) error {
	return s.db.Transact(ctx, what, shard, func(tx *db.Tx) error { return write(&writer{Tx: tx, store: s}) })
}
