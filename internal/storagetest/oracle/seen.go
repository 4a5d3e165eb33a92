package oracle

import (
	"context"
	"fmt"

	"kith/storage"
)

// See implements [storage.Store].
func (s *Store) See(ctx context.Context, what storage.Seen, upTo storage.Micros) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	if _, counted := s.counts[what.User]; !counted {
		return false, fmt.Errorf("what user %d sees: %w", what.User, storage.ErrUserUnknown)
	}
	if s.seen[what] >= upTo {
		return false, nil
	}
	s.seen[what] = upTo
	return true, nil
}
