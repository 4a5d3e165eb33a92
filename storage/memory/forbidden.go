package memory

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
)

// ForbiddenFollows implements [storage.Comparer].
func (s *Store) ForbiddenFollows(ctx context.Context, _ int, owners storage.OwnerRange) ([]storage.Pair, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var follows []storage.Pair
	for _, e := range s.owned(storage.Forward, owners) {
		_, counted := s.counts[e.From]
		if counted && e.Type == storage.Following && s.isBlockedBy(e.From, e.To) {
			follows = append(follows, e.Pair())
		}
	}
	slices.SortFunc(follows, func(a, b storage.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return follows, nil
}
