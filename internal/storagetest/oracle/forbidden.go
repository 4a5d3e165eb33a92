package oracle

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/sides"
)

// ForbiddenFollows implements [sides.Comparer].
func (s *Store) ForbiddenFollows(ctx context.Context, shard int, owners sides.OwnerRange) ([]storage.Pair, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var follows []storage.Pair
	for _, e := range s.owned(shard, storage.Forward, owners) {
		_, counted := s.counts[e.From]
		back := s.row(storage.Inverse, storage.Pair{From: e.To, To: e.From})
		if counted && (e.Type == storage.Following || e.Type == storage.Requested) && back.Type == storage.Blocking {
			follows = append(follows, e.Pair())
		}
	}
	slices.SortFunc(follows, storage.Forward.Compare)
	return follows, nil
}
