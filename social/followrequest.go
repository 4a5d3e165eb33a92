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

func (t *Relations) answerFollow(ctx context.Context, user, other storage.UserID, kind storage.EdgeType) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.changeEdge(ctx, storage.Forward, other, storage.EdgeChange{To: user, Type: kind, Ends: storage.Requested})
	switch {
	case errors.Is(err, storage.ErrLimitReached):
		return o, fmt.Errorf("%w: %s", ErrTheirLimit, other)
	case err != nil:
		return o, noAsker(err)
	case o.Row.Edge.Type != kind:
		return Outcome{}, fmt.Errorf("%w: user %s does not wait to follow %s", storage.ErrNoRequest, other, user)
	}
	return o, nil
}

const (
	// MaxAcceptedAtOnce is how many requests AcceptFollows accepts: each takes a transaction or two.
	MaxAcceptedAtOnce = 100
	// maxExaminedRequests is how many it looks at, if those who asked are hidden or may follow nobody else.
	maxExaminedRequests = 500
)

// AcceptFollows accepts the oldest requests to follow a user, at most [MaxAcceptedAtOnce]. It leaves out hidden users and
// users who have reached their limit. Whatever it has not come to waits, after a crash as well: call it again. The outcome
// has the rows written; its own row is empty.
func (t *Relations) AcceptFollows(ctx context.Context, user storage.UserID) (all Outcome, err error) {
	query, accepted := storage.PageQuery{Owner: user, Type: storage.Requested, Limit: MaxAcceptedAtOnce, Backward: true}, 0
	for range maxExaminedRequests / MaxAcceptedAtOnce {
		page := storage.PageLookups[storage.Inverse].Read(ctx, t.Store, query)[0]
		if page.Err != nil {
			return all, fmt.Errorf("read who asks to follow user %s: %w", user, page.Err)
		}
		for i := len(page.Value) - 1; i >= 0 && accepted < MaxAcceptedAtOnce; i-- { // oldest first
			one := page.Value[i]
			o, err := t.AcceptFollow(ctx, user, one.From)
			switch {
			case errors.Is(err, storage.ErrNoRequest), errors.Is(err, ErrTheirLimit), errors.Is(err, storage.ErrForbidden):
				continue
			case err != nil:
				return all, err
			}
			all.Written, all.Stale = append(all.Written, o.Written...), all.Stale || o.Stale
			if o.Changed {
				all.Changed = true
				accepted++
			}
		}
		if len(page.Value) < query.Limit || accepted == MaxAcceptedAtOnce {
			return all, nil
		}
		query.Before = storage.PositionOf(storage.Inverse, page.Value[0])
	}
	return all, nil
}
