package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// A follow of a locked user is a request until the user accepts it: a row of another type, in the place of the follow. So
// whoever withdraws it, answers it or blocks changes one row on the shard of the user who asks, in one transaction, if
// the row is then still what it has to be. Nothing can follow twice or come back.

// DeclineFollow ends another user's request to follow the user. [ErrSelf], [storage.ErrNoRequest] if the other follows already.
func (t *Relations) DeclineFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.endFollow(ctx, other, user, storage.Denied)
	return o, noAsker(err)
}

// WithdrawFollow ends the user's request to follow another. None goes to a hidden user. [ErrSelf], [storage.ErrNoRequest] if the user
// follows already.
func (t *Relations) WithdrawFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	switch {
	case user == other:
		return Outcome{}, ErrSelf
	case t.HiddenUsers.Has(other):
		return Outcome{}, nil
	}
	o, err := t.endFollow(ctx, user, other, storage.None)
	return o, gone(user, err)
}

// endFollow ends a request to follow: its row becomes one or the other tombstone.
func (t *Relations) endFollow(ctx context.Context, from, to storage.UserID, tombstone storage.EdgeType) (Outcome, error) {
	o, err := t.changeEdge(ctx, storage.Forward, from, storage.EdgeChange{To: to, Type: tombstone, Ends: storage.Requested})
	if err == nil && !o.Row.Edge.Type.HasEnded() {
		return Outcome{}, notWaiting(from, to)
	}
	return o, err
}

func notWaiting(from, to storage.UserID) error {
	return fmt.Errorf("%w: user %s does not wait to follow %s", storage.ErrNoRequest, from, to)
}
