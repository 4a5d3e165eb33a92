package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// Mark changes a user's note on another whom it follows. Only the user sees the note, and it ends
// with the follow. Mark reports whether that changed anything.
//
// Errors: [ErrSelf]; [storage.ErrNotFollowing], also for a hidden user;
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
