package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// Mark changes what a user notes on another whom it follows: for itself alone, and gone
// with the follow. It reports whether that changed anything.
//
// [ErrSelf], [storage.ErrNotFollowing], also for whoever is hidden,
// [storage.ErrLimitReached] beyond [storage.MaxSpecials].
func (t *Relations) Mark(ctx context.Context, user, other storage.UserID, change storage.MarkChange) (changed bool, err error) {
	switch {
	case user == other:
		return false, ErrSelf
	case t.HiddenUsers.Has(other):
		return false, fmt.Errorf("%w: user %s is hidden", storage.ErrNotFollowing, other)
	}
	_, changed, err = t.Store.SetMark(ctx, storage.Pair{From: user, To: other}, change)
	if err != nil {
		return false, fmt.Errorf("mark user %s for %s: %w", other, user, err)
	}
	return changed, nil
}
