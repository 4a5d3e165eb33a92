package social

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// Friend requests. A friend is a mutual follow (seeds: strong friends), so
// accepting a request makes both follow. This takes two steps, each in one transaction: on
// the asker's shard the request is accepted and the asker follows; when that is applied
// on the other's shard, the other follows. Both steps are done when the call returns,
// in every redundancy mode. If a crash comes in between, the second step is done, once, when the
// request's row is propagated: the row's version shows whether it has been done.

// Ask makes a user ask another to be friends. If the other has asked, that request is accepted.
//
// Errors: [ErrSelf]; [storage.ErrUserUnknown]; [storage.ErrForbidden] if one blocks the other
// or the last decline is too recent; [storage.ErrLimitReached] with too many pending requests,
// or, if both have asked, with too many followings. A [ActorMissing] means that the user itself does not
// exist.
func (t *Relations) Ask(ctx context.Context, people storage.Answerer, user, other storage.UserID, message string) (Outcome, error) {
	if _, errs := t.present(ctx, people, user, []storage.UserID{other}); errs[0] != nil {
		return Outcome{}, errs[0]
	}
	o, err := t.changeEdge(ctx, storage.Requests, user, storage.EdgeChange{To: other, Type: storage.Pending, Message: message})
	return o, gone(user, err)
}

// Accept makes a user accept another's request.
//
// Errors: [ErrSelf]; [storage.ErrNoRequest] if none is pending;
// [storage.ErrForbidden]; [storage.ErrLimitReached] and [ErrTheirLimit] if the user, or the
// other, has reached the limit of followings. The user's own limit is on another shard, so it is
// checked before and not in the same transaction: if the user follows another user at the same
// time, the limit may be exceeded by one.
func (t *Relations) Accept(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	if err := t.roomFor(ctx, user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.changeEdge(ctx, storage.Requests, other, storage.EdgeChange{To: user, Type: storage.Accepted})
	if errors.Is(err, storage.ErrLimitReached) {
		err = fmt.Errorf("%w: %s", ErrTheirLimit, other)
	}
	return o, noAsker(err)
}

// roomFor reports whether a user may follow one more, or follows the other already.
func (t *Relations) roomFor(ctx context.Context, user, other storage.UserID) error {
	limit := t.Rules.Load().MaxFollowing
	if limit == 0 {
		return nil
	}
	counts := storage.CountLookups.Read(ctx, t.Store, user)[0]
	if counts.Err != nil {
		return fmt.Errorf("read how many user %s follows: %w", user, counts.Err)
	}
	if counts.Value.Following < limit {
		return nil
	}
	edge := storage.EdgeLookups[storage.Forward].Read(ctx, t.Store, storage.Pair{From: user, To: other})[0]
	if edge.Err != nil {
		return fmt.Errorf("read whether user %s follows %s: %w", user, other, edge.Err)
	}
	if edge.Value.Type == storage.Following {
		return nil
	}
	return fmt.Errorf("%w: user %s", storage.ErrLimitReached, user)
}

// Decline makes a user decline another's request; the other may ask again after a
// pause. [ErrSelf], [storage.ErrNoRequest].
func (t *Relations) Decline(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.changeEdge(ctx, storage.Requests, other, storage.EdgeChange{To: user, Type: storage.Declined})
	return o, noAsker(err)
}

// noAsker: if the asker does not exist, there is no request.
func noAsker(err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return fmt.Errorf("%w: %w", storage.ErrNoRequest, err)
	}
	return err
}

// visible returns an error if the other user is hidden: then the user sees no request from or
// to the other.
func (t *Relations) visible(user, other storage.UserID) error {
	switch {
	case user == other:
		return ErrSelf
	case t.HiddenUsers.Has(other):
		return fmt.Errorf("%w: user %s is hidden", storage.ErrNoRequest, other)
	}
	return nil
}

// Cancel withdraws a user's request to another. [ErrSelf], [storage.ErrNoRequest].
func (t *Relations) Cancel(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.changeEdge(ctx, storage.Requests, user, storage.EdgeChange{To: other, Type: storage.Cancelled})
	return o, gone(user, err)
}

// Remove ends the friendship of two users, with or without a request: neither follows the other any
// more. There is no friendship with an unknown or hidden user. [ErrSelf].
func (t *Relations) Remove(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	switch {
	case user == other:
		return Outcome{}, ErrSelf
	case t.HiddenUsers.Has(other):
		return Outcome{}, nil
	}
	o, err := t.changeEdge(ctx, storage.Requests, user, storage.EdgeChange{To: other, Type: storage.Removed})
	return o, gone(user, err)
}
