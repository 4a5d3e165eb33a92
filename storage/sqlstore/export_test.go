package sqlstore

import (
	"context"

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
