package social

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/notify"
)

// Requests for friendship. A friend is a mutual follow (seeds: strong friends), so a
// request that is accepted makes both follow. It does in two steps, each in one transaction: on
// the asker's shard the request is accepted and the asker follows; when that is applied
// on the other's shard, the other follows. Both have been done when the call returns,
// in every redundancy mode; what a crash leaves in between is done by whatever carries
// the request's row, once, because the row's version tells whether it has been.

// Ask makes a user ask another to be friends. If the other has asked, that is accepted.
//
// [ErrSelf], [storage.ErrUserUnknown], [storage.ErrForbidden] where one blocks the other
// or too soon after a decline, [storage.ErrLimitReached] with too many that are pending,
// or, of two who ask each other, with too many followings. A [Gone] is the user itself.
func (t *Relations) Ask(ctx context.Context, people People, user, other storage.UserID, message string) (Outcome, error) {
	if err := t.present(ctx, people, user, []storage.UserID{other})[0]; err != nil {
		return Outcome{}, err
	}
	o, err := t.request(ctx, storage.Pair{From: user, To: other}, storage.RequestChange{Act: storage.Ask, Message: message})
	return o, gone(user, err)
}

// Accept makes a user accept what another has asked.
//
// [ErrSelf]; [storage.ErrNoRequest] when nothing is pending any more;
// [storage.ErrForbidden]; [storage.ErrLimitReached] and [ErrTheirLimit] when the user, or the
// other, follows as many as one may. The user's own limit is looked at before, not in
// one transaction with the rest, since it lies on another shard: a follow of the user's
// at the same time may make it one more.
func (t *Relations) Accept(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	if err := t.roomFor(ctx, user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.request(ctx, storage.Pair{From: other, To: user}, storage.RequestChange{Act: storage.Accept})
	if errors.Is(err, storage.ErrLimitReached) {
		err = fmt.Errorf("%w: %s", ErrTheirLimit, other)
	}
	return o, noAsker(err)
}

// roomFor tells whether a user may follow one more, or follows the other already.
func (t *Relations) roomFor(ctx context.Context, user, other storage.UserID) error {
	if t.MaxFollowing == 0 {
		return nil
	}
	counts := t.Store.Counts(ctx, []storage.UserID{user})[0]
	if counts.Err != nil {
		return fmt.Errorf("read how many user %s follows: %w", user, counts.Err)
	}
	if counts.Value.Following < t.MaxFollowing {
		return nil
	}
	edge := t.Store.Edges(ctx, storage.Forward, []storage.Pair{{From: user, To: other}})[0]
	if edge.Err != nil {
		return fmt.Errorf("read whether user %s follows %s: %w", user, other, edge.Err)
	}
	if edge.Value.Type == storage.Following {
		return nil
	}
	return fmt.Errorf("%w: user %s", storage.ErrLimitReached, user)
}

// Decline makes a user decline what another has asked; the other may ask again after a
// pause. [ErrSelf], [storage.ErrNoRequest].
func (t *Relations) Decline(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.request(ctx, storage.Pair{From: other, To: user}, storage.RequestChange{Act: storage.Decline})
	return o, noAsker(err)
}

// noAsker: where there is no asker there is no request.
func noAsker(err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return fmt.Errorf("%w: %w", storage.ErrNoRequest, err)
	}
	return err
}

// visible tells whether there can be a request of another that a user sees, or one of its
// own to the other.
func (t *Relations) visible(user, other storage.UserID) error {
	switch {
	case user == other:
		return ErrSelf
	case t.HiddenUsers.Has(other):
		return fmt.Errorf("%w: user %s is hidden", storage.ErrNoRequest, other)
	}
	return nil
}

// Cancel takes back what a user has asked another. [ErrSelf], [storage.ErrNoRequest].
func (t *Relations) Cancel(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.request(ctx, storage.Pair{From: user, To: other}, storage.RequestChange{Act: storage.Cancel})
	return o, gone(user, err)
}

// Remove ends the friendship of two users: neither follows the other any more, also
// where they came to it without a request. With somebody unknown or hidden there is none.
// [ErrSelf].
func (t *Relations) Remove(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	switch {
	case user == other:
		return Outcome{}, ErrSelf
	case t.HiddenUsers.Has(other):
		return Outcome{}, nil
	}
	o, err := t.request(ctx, storage.Pair{From: user, To: other}, storage.RequestChange{Act: storage.Remove})
	return o, gone(user, err)
}

// request does one act and brings it to the other shard.
func (t *Relations) request(ctx context.Context, pair storage.Pair, change storage.RequestChange) (o Outcome, err error) {
	change.At = t.at()
	ctx, end := notify.Whole(ctx)
	defer func() { end(!o.Stale) }()
	r, err := t.Store.ChangeRequest(ctx, pair, change, storage.RequestOptions{
		TTL: t.RequestTTL, Pause: t.RequestPause, MaxFollowing: t.MaxFollowing, MaxPending: t.MaxPending,
		Inverse: t.Redundancy.Inline(),
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("change the request of user %s to %s: %w", pair.From, pair.To, err)
	}
	row := storage.Row{Side: storage.Requests, Edge: r.Row}
	written := r.Written
	if !r.Changed && r.Row.UpdateTime > 0 {
		// Once more: the first time may have ended before it came to the other shard, with
		// the follow or its end.
		written = []storage.Written{{Row: row}}
		if follow := t.Store.Edges(ctx, storage.Forward, []storage.Pair{pair})[0]; follow.Value.UpdateTime > 0 {
			written = append(written, storage.Written{Row: storage.Row{Side: storage.Forward, Edge: follow.Value}})
		}
	}
	o = Outcome{Row: row, Changed: r.Changed}
	o.Written, o.Stale = t.settle(ctx, written)
	return o, nil
}
