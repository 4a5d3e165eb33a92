package sqlstore

import (
	"context"

	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// A writer is one transaction on one shard.
type writer struct {
	*db.Tx
	store *Store

	packed packed.Flags
}

// transact runs a write on one shard as one transaction, see [db.DB.Transact].
func (s *Store) transact(ctx context.Context, what string, shard int, write func(*writer) error) error {
	return s.db.Transact(ctx, what, shard, func(tx *db.Tx) error { return write(&writer{Tx: tx, store: s}) })
}
