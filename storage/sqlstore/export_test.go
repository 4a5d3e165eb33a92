package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
)

// Claim leaves a claim on a handle as a [Store.Register] does that ends before it
// makes its user.
func (s *Store) Claim(ctx context.Context, handle string, id storage.UserID, at storage.Micros) error {
	return s.transact(ctx, "handles", s.place.OfHandle(handle), func(w *writer) error {
		_, err := w.exec(1, "INSERT"+sqlClaimHandles+tuples(1, 3), handle, int64(id), int64(at))
		return err
	})
}

// HoldWrites takes all connections for writes until what it returns is called.
func (s *Store) HoldWrites(ctx context.Context) (release func(), err error) {
	var held []*sql.Tx
	release = func() {
		for _, tx := range held {
			_ = tx.Rollback()
		}
	}
	for _, db := range s.shards {
		for range db.write.Stats().MaxOpenConnections {
			tx, err := db.write.BeginTx(ctx, nil)
			if err != nil {
				release()
				return nil, err
			}
			held = append(held, tx)
		}
	}
	return release, nil
}

// Waiting is how many changes, and how many edges to be applied, wait for others towards
// the same account.
func (s *Store) Waiting(owner storage.UserID) (changes, applies int) {
	return s.changes.waitingFor(crowdKey{owner: owner}), s.applies.waitingFor(crowdKey{owner, storage.Inverse, storage.IfNewer})
}

// Serving tells that a change towards an account is being written.
func (s *Store) Serving(owner storage.UserID) bool {
	s.changes.mu.Lock()
	defer s.changes.mu.Unlock()
	_, busy := s.changes.queues[crowdKey{owner: owner}]
	return busy
}
