package social

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// A follow of a locked user is a request until the user accepts it: a row of another type, in the place of the follow. So
// whoever withdraws it, answers it or blocks changes one row on the shard of the user who asks, in one transaction, if
// the row is then still what it has to be. Nothing can follow twice or come back.

// AcceptFollow makes another user, who has asked to, follow the user.
//
// Errors: [ErrSelf]; [storage.ErrNoRequest] if none waits; [storage.ErrForbidden]; [ErrTheirLimit].
func (t *Relations) AcceptFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	return t.answerFollow(ctx, user, other, storage.Following)
}

// DeclineFollow ends another user's request to follow the user. [ErrSelf], [storage.ErrNoRequest] if the other follows already.
func (t *Relations) DeclineFollow(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	return t.answerFollow(ctx, user, other, storage.None)
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

func (t *Relations) answerFollow(ctx context.Context, user, other storage.UserID, kind storage.EdgeType) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.endFollow(ctx, other, user, kind)
	if errors.Is(err, storage.ErrLimitReached) {
		return o, fmt.Errorf("%w: %s", ErrTheirLimit, other)
	}
	return o, noAsker(err)
}

// endFollow turns a request to follow into an edge of a type.
func (t *Relations) endFollow(ctx context.Context, from, to storage.UserID, kind storage.EdgeType) (Outcome, error) {
	o, err := t.changeEdge(ctx, storage.Forward, from, storage.EdgeChange{To: to, Type: kind, Ends: storage.Requested})
	if err == nil && o.Row.Edge.Type != kind {
		return Outcome{}, fmt.Errorf("%w: user %s does not wait to follow %s", storage.ErrNoRequest, from, to)
	}
	return o, err
}
