package storagetest

import (
	"context"

	"kith/storage"
)

// Request changes one request to be friends.
func Request(ctx context.Context, s storage.Store, request storage.Pair, change storage.EdgeChange, o storage.ChangeOptions) (storage.Changed, error) {
	change.To = request.To
	r := s.ChangeEdges(ctx, storage.Requests, request.From, []storage.EdgeChange{change}, o)[0]
	return r.Value, r.Err
}
