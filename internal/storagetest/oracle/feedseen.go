package oracle

import (
	"context"
	"fmt"

	"kith/storage"
)

// SeeFeed implements [storage.ActivityStore].
func (s *Store) SeeFeed(ctx context.Context, user storage.UserID, upTo storage.Micros) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	if _, counted := s.counts[user]; !counted {
		return false, fmt.Errorf("see the feed of user %d: %w", user, storage.ErrUserUnknown)
	}
	if s.feedSeen[user] >= upTo {
		return false, nil
	}
	s.feedSeen[user] = upTo
	return true, nil
}
