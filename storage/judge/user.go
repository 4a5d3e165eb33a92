package judge

import (
	"fmt"

	"kith/storage"
)

// ClaimTTL is how old a claim on a handle without a user must be, in microseconds, before it may be
// taken over.
const ClaimTTL storage.Micros = 60_000_000

// HandleRest is how long after a user is erased nobody else gets the handle, in microseconds: 30 days. Until then its claim is dated
// ahead.
const HandleRest storage.Micros = 30 * 24 * 60 * ClaimTTL

// State reports whether a user's state changes to another one, see [storage.Store]. It returns
// [storage.ErrForbidden] if the user is being or has been deleted, or if the new state is Deleted,
// which only Erase sets.
func State(user storage.UserID, from, to storage.UserState) (changes bool, err error) {
	if from == to {
		return false, nil
	}
	if from >= storage.Deleting || to > storage.Deleting {
		return false, fmt.Errorf("%w: user %s goes from state %d to %d", storage.ErrForbidden, user, from, to)
	}
	return true, nil
}

// NewUser returns [storage.ErrIDUnusable] if no user can be made with an id that has this state.
func NewUser(id storage.UserID, state storage.UserState) error {
	if id > storage.MaxUserID || state == storage.Deleted {
		return fmt.Errorf("create user %s: %w", id, storage.ErrIDUnusable)
	}
	return nil
}

// Suspension reports whether an entry suspends or reinstates a user who is suspended until a time, see [storage.Store].
// [storage.ErrUserUnknown] if the user is being or has been deleted.
func Suspension(state storage.UserState, until storage.Micros, e storage.ModerationEntry) (changes bool, err error) {
	switch {
	case state >= storage.Deleting:
		return false, fmt.Errorf("%w: %s", storage.ErrUserUnknown, e.User)
	case e.Action == storage.Reinstated:
		return until > e.At, nil
	}
	return until != e.Until, nil
}

// ReportedFor is for how long a user cannot report the same again.
const ReportedFor storage.Micros = 30 * 86_400e6

// Report reports whether an entry may be added after the last one of the same report, see [storage.Store].
func Report(last storage.Micros, e storage.ModerationEntry) bool {
	return last == 0 || e.At-last >= ReportedFor
}

// Mark returns a follow's mark after a change. specials counts the user's special follows; it is
// called only if their limit matters: [storage.ErrLimitReached]. [storage.ErrAttributesTooLong].
func Mark(user storage.UserID, mark storage.EdgeMark, change storage.MarkChange, specials func() (int, error)) (storage.EdgeMark, error) {
	special := mark.Special
	if change.Special != nil {
		mark.Special = *change.Special
	}
	if change.Remark != nil {
		mark.Remark = *change.Remark
	}
	var err error
	if mark.Attributes, err = change.Attributes.Apply(mark.Attributes); err != nil || special || !mark.Special {
		return mark, err
	}
	n, err := specials()
	if err == nil && n >= storage.MaxSpecials {
		err = fmt.Errorf("%w: user %s has %d special follows", storage.ErrLimitReached, user, n)
	}
	return mark, err
}
