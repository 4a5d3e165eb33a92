package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// A follow of a locked user is a request until the user accepts it: a row of another type, in the place of the follow. So
// whoever withdraws it, answers it or blocks changes one row on the shard of the user who asks, in one transaction, if
// the row is then still what it has to be. Nothing can follow twice or come back.

// DeclineFollow ends another user's request to follow the user. [ErrSelf], [storage.ErrNoEdge] if the other follows already.
func (t *Relations) DeclineFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	o, err := t.decline(ctx, storage.Forward, user, other, storage.EdgeChange{To: user, Type: storage.Denied, Ends: storage.Requested})
	return waited(o, err, other, user)
}

// WithdrawFollow ends the user's request to follow another. None goes to a hidden user. [ErrSelf], [storage.ErrNoEdge] if the user
// follows already.
func (t *Relations) WithdrawFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	o, err := t.endOwn(ctx, storage.Forward, user, storage.EdgeChange{To: other, Type: storage.None, Ends: storage.Requested})
	return waited(o, err, user, other)
}

// waited refuses to have ended a request where there is a follow, or a block.
func waited(o Outcome, err error, from, to storage.UserID) (Outcome, error) {
	if err == nil && !o.Row.Edge.Type.HasEnded() {
		return Outcome{}, notWaiting(from, to)
	}
	return o, err
}

func notWaiting(from, to storage.UserID) error {
	return fmt.Errorf("%w: user %s does not wait to follow %s", storage.ErrNoEdge, from, to)
}
