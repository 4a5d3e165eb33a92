package social

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/storage"
)

// ErrSelf: one does not follow oneself.
var ErrSelf = errors.New("a user cannot follow itself")

// Redundancy is how the inverse side comes to hold what has been written to the
// forward side: the modes of the seeds ("好友中心" §7: by the service itself, by a
// message, by the log).
type Redundancy interface {
	// Inline tells whether inverse rows that lie in the same database are written in
	// the forward rows' transaction.
	Inline() bool

	// Carry takes care of rows that have been written, on the forward side or on both.
	// An error means that inverse rows are not there, nor is it sure that they will
	// be: that has been counted, and is left to retry and reconcile.
	Carry(ctx context.Context, written []storage.Changed) error
}

// People tells who exists.
type People interface {
	Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User]
}

// Ties changes who follows whom.
type Ties struct {
	store        storage.EdgeChanger
	redundancy   Redundancy
	maxFollowing int64
	now          func() time.Time
}

// DefaultMaxFollowing is how many users one may follow.
const DefaultMaxFollowing = 5000

// NewTies makes the rules over a store. maxFollowing 0 means no limit.
func NewTies(store storage.EdgeChanger, redundancy Redundancy, maxFollowing int64) *Ties {
	return &Ties{store, redundancy, maxFollowing, time.Now}
}

// Tie is what became of one follow or its end.
type Tie struct {
	Row     storage.Edge // as it is now
	Changed bool
	Err     error // [ErrSelf], [storage.ErrUserUnknown], [storage.ErrLimitReached], or a fault
}

// Follow makes a user follow others, those of them who exist, in one transaction.
// Each has an outcome of its own, in their order. What is followed already stays as
// it is.
//
// stale tells that the inverse side is behind for a reason that waiting does not
// mend. err is set when the user itself is unknown, or its shard did not answer.
func (t *Ties) Follow(ctx context.Context, people People, user storage.UserID, others []storage.UserID) (ties []Tie, stale bool, err error) {
	ties = make([]Tie, len(others))
	for i, r := range people.Users(ctx, others) {
		switch {
		case others[i] == user:
			ties[i].Err = ErrSelf
		case r.Err != nil:
			ties[i].Err = r.Err
		case !r.Found:
			ties[i].Err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, others[i])
		}
	}
	stale, err = t.change(ctx, user, others, storage.Following, ties)
	return ties, stale, err
}

// Unfollow ends follows of a user. Unknown users, whom nobody follows, are no
// error.
func (t *Ties) Unfollow(ctx context.Context, user storage.UserID, others []storage.UserID) (ties []Tie, stale bool, err error) {
	ties = make([]Tie, len(others))
	for i, other := range others {
		if other == user {
			ties[i].Err = ErrSelf
		}
	}
	stale, err = t.change(ctx, user, others, storage.None, ties)
	return ties, stale, err
}

// change writes the edges of those that have no error yet.
func (t *Ties) change(ctx context.Context, user storage.UserID, others []storage.UserID, kind storage.EdgeType, ties []Tie) (stale bool, err error) {
	at := storage.MicrosOf(t.now())
	var changes []storage.EdgeChange
	var index []int
	for i, other := range others {
		if ties[i].Err == nil {
			changes = append(changes, storage.EdgeChange{To: other, Type: kind, At: at})
			index = append(index, i)
		}
	}
	if len(changes) == 0 {
		return false, nil
	}
	options := storage.ChangeOptions{MaxFollowing: t.maxFollowing, Inverse: t.redundancy.Inline()}
	var written []storage.Changed
	for j, r := range t.store.ChangeEdges(ctx, user, changes, options) {
		tie := &ties[index[j]]
		tie.Row, tie.Changed, tie.Err = r.Value.Row, r.Value.Changed, r.Err
		if r.Err != nil && !errors.Is(r.Err, storage.ErrLimitReached) {
			return false, fmt.Errorf("change follows of user %s: %w", user, r.Err)
		}
		if r.Value.Changed {
			written = append(written, r.Value)
		}
	}
	if len(written) == 0 {
		return false, nil
	}
	return t.redundancy.Carry(ctx, written) != nil, nil
}
