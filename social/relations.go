package social

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kith/graph/defaults"
	"kith/storage"
)

// ErrSelf: no user follows, blocks or befriends itself.
var ErrSelf = errors.New("not towards oneself")

// ErrTheirLimit: the other user would have to follow, but has reached its limit of followings.
var ErrTheirLimit = errors.New("the other user has reached its limit of followings")

// Redundancy is how the inverse side gets the rows written to the
// forward side: the modes of the seeds ("好友中心" §7: by the service itself, by a
// message, by the log).
type Redundancy interface {
	// Inline reports whether inverse rows in the same database are written in the forward rows'
	// transaction.
	Inline() bool

	// Propagate takes over forward rows that have been written, alone or together with
	// their other side, and the consequences written there. An error means that other sides are
	// missing and may stay missing: this has been counted, and retries and reconcile repair it.
	Propagate(ctx context.Context, written []storage.Written) error
}

// Rules are what operators set for all processes on a store.
type Rules struct {
	// MaxFollowing is how many users a user may follow, and how many it may block. 0 means no limit.
	MaxFollowing int64
	// RequestTTL is how long a friend request can be accepted. Defaults to
	// [storage.DefaultRequestTTL]. The store has to have the same value.
	RequestTTL time.Duration
	// RequestPause is how long after a decline the same user may not ask again. Defaults to
	// [DefaultRequestPause].
	RequestPause time.Duration
}

// NewRules are rules that may be replaced.
func NewRules(r Rules) *atomic.Pointer[Rules] {
	r = defaults.For(r, Rules{RequestTTL: storage.DefaultRequestTTL, RequestPause: DefaultRequestPause})
	now := new(atomic.Pointer[Rules])
	now.Store(&r)
	return now
}

// Relations changes the relations of users: follows, blocks, friend
// requests, notes on follows, and favorites of posts.
type Relations struct {
	Store      storage.Store
	Redundancy Redundancy

	// Rules are loaded at each write: they may change. Defaults to [NewRules] without a limit.
	Rules *atomic.Pointer[Rules]

	// HiddenUsers are hidden: nobody can follow, block or ask them. Defaults to nobody.
	HiddenUsers HiddenUsers
	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time

	passes *passes
}

const (
	// MaxPending is how many of a user's requests may be pending.
	MaxPending = 1000

	DefaultRequestPause = 7 * 24 * time.Hour
)

// NewRelations completes relations with their defaults.
func NewRelations(t Relations) *Relations {
	t = defaults.For(t, Relations{Rules: NewRules(Rules{}), HiddenUsers: nobody{}, Now: time.Now})
	t.passes = &passes{of: map[storage.UserID]pass{}}
	return &t
}

// Outcome is the result of a block, a change of a request, or the end of one.
type Outcome struct {
	Row     storage.Row // as it is now; UpdateTime 0 if there is none
	Changed bool        // false if it was already so
	Kept    bool        // only what is stored with the row has changed

	// Written are the forward rows that were written on any shard, the first one being
	// Row; those whose Inverse is set are on both sides.
	Written []storage.Written

	// Stale reports that an inverse side lags for a reason that waiting does not repair.
	Stale bool
}

// present reads users, and returns an error for each who cannot be acted on: the user itself, and users who do
// not exist or are hidden. Both are in the order of others; the errors are nil for the rest.
func (t *Relations) present(ctx context.Context, people storage.Answerer, user storage.UserID, others []storage.UserID) ([]storage.Result[storage.User], []error) {
	rows, errs := storage.UserLookups.Read(ctx, people, others...), make([]error, len(others))
	for i, r := range rows {
		switch {
		case others[i] == user:
			errs[i] = ErrSelf
		case r.Err != nil:
			errs[i] = r.Err
		case !r.Found, t.HiddenUsers.Has(others[i]):
			errs[i] = unknown(others[i])
		}
	}
	return rows, errs
}

// Mark changes a user's note on another whom it follows. Only the user sees the note, and it ends
// with the follow. Mark reports whether that changed anything.
//
// Errors: [ErrSelf]; [storage.ErrNoEdge], also for a hidden user;
// [storage.ErrLimitReached] beyond [storage.MaxSpecials].
func (t *Relations) Mark(ctx context.Context, user, other storage.UserID, change storage.MarkChange) (changed bool, err error) {
	if err := t.visible(user, other); err != nil {
		return false, err
	}
	_, changed, err = t.Store.SetMark(ctx, storage.Pair{From: user, To: other}, change)
	if err != nil {
		return false, fmt.Errorf("mark user %s for %s: %w", other, user, err)
	}
	return changed, nil
}
