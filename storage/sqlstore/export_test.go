package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
)

// Claim leaves a claim on a handle, as a [Store.Register] does that ends before it creates its
// user.
func (s *Store) Claim(ctx context.Context, handle string, id storage.UserID, at storage.Micros) error {
	return s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error {
		_, err := w.Exec(1, s.sql.Text(sqlClaimHandles), handle, int64(id), int64(at))
		return err
	})
}

// HoldWrites takes all connections for writes until release is called.
func (s *Store) HoldWrites(ctx context.Context) (release func(), err error) {
	var held []*sql.Tx
	release = func() {
		for _, tx := range held {
			_ = tx.Rollback()
		}
	}
	for _, n := range s.db.All() {
		for range n.Write.Stats().MaxOpenConnections {
			tx, err := n.Write.BeginTx(ctx, nil)
			if err != nil {
				release()
				return nil, err
			}
			held = append(held, tx)
		}
	}
	return release, nil
}

// Waiting returns how many small writes wait for others on the first shard.
func (s *Store) Waiting() int {
	waiting, _ := s.smallWrites.Waiting(0)
	return waiting
}

// Serving is how many transactions write changes on the first shard.
func (s *Store) Serving() int {
	_, serving := s.smallWrites.Waiting(0)
	return serving
}

// listRow reads a list row by row, also one that is packed.
func (s *Store) listRow(ctx context.Context, side storage.Side, shard int, q storage.ListQuery, found func(storage.ListQuery, storage.List)) error {
	_, err := s.listRows(ctx, side, shard, sqlList[side], []storage.ListQuery{q}, found)
	return err
}
