package social

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"kith/graph/declared"
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
	return t.begin(ctx, people, storage.Requests, user, storage.EdgeChange{To: other, Type: storage.Pending, Message: message})
}

// acceptedAtOnce is how many requests one call of Accept writes at a time: those that wait for a shard share a transaction.
const acceptedAtOnce = 25

// Accept makes a user accept requests of others, each named once: to be friends, which are on the side [storage.Requests], or to follow,
// on [storage.Forward]. Each has its own outcome, in their order. The consequences on other shards are written once for all.
//
// Errors: [ErrSelf]; [storage.ErrNoEdge] if none is pending;
// [storage.ErrForbidden]; [ErrTheirLimit] if the other has reached the limit of followings; [storage.ErrLimitReached] if the user, who
// becomes a friend, has. The user's own limit is on another shard, so it is checked before and not in the same transaction: if the user
// follows others at the same time, the limit may be exceeded by as many.
func (t *Relations) Accept(ctx context.Context, side storage.Side, user storage.UserID, others ...storage.UserID) []storage.Result[Outcome] {
	change := storage.EdgeChange{To: user, Type: storage.Following, Ends: storage.Requested, At: t.at()}
	errs := storage.Each(others, func(other storage.UserID) error { return t.visible(user, other) })
	if side == storage.Requests {
		change.Type, change.Ends = storage.Accepted, 0
		t.roomFor(ctx, user, others, errs)
	}
	outcomes := make([]storage.Result[Outcome], len(others))
	var writing errgroup.Group
	writing.SetLimit(acceptedAtOnce)
	for i, other := range others {
		if outcomes[i].Err = errs[i]; errs[i] == nil {
			writing.Go(func() error {
				outcomes[i].Value, outcomes[i].Err = t.writeEdge(ctx, side, other, change)
				return nil
			})
		}
	}
	_ = writing.Wait()
	var written []storage.Written
	index := make(map[storage.UserID]*Outcome, len(others))
	for i, other := range others {
		o := &outcomes[i]
		switch {
		case errs[i] == nil && errors.Is(o.Err, storage.ErrLimitReached):
			o.Err = fmt.Errorf("%w: %s", ErrTheirLimit, other)
		case o.Err == nil && o.Value.Row.Edge.Type != change.Type:
			o.Value, o.Err = Outcome{}, notWaiting(other, user)
		}
		o.Err, index[other] = noAsker(o.Err), &o.Value
		written, o.Value.Written = append(written, o.Value.Written...), nil
	}
	if side == storage.Forward {
		t.tellAccepted(ctx, user, written)
	}
	all, stale := t.settle(ctx, written)
	for _, w := range all {
		o := index[w.Edge.From]
		if w.Edge.From == user {
			o = index[w.Edge.To]
		}
		o.Written, o.Stale = append(o.Written, w), stale
	}
	return outcomes
}

// tellAccepted tells users that their requests to follow were accepted, except those who followed before. Failures are not reported: the
// follows stand.
func (t *Relations) tellAccepted(ctx context.Context, user storage.UserID, follows []storage.Written) {
	ctx, cancel := committed(ctx)
	defer cancel()
	follows = slices.DeleteFunc(slices.Clone(follows), func(w storage.Written) bool { return w.Again })
	if followers := storage.Each(follows, func(w storage.Written) storage.UserID { return w.Edge.From }); len(followers) > 0 {
		made, _ := t.Relate(ctx, t.Store, user, declared.Acceptances, followers, storage.DetailChange{})
		kept := slices.DeleteFunc(storage.Indexes(len(made)), func(i int) bool { return !made[i].Value.Kept })
		if again := storage.Chosen(followers, kept); len(again) > 0 { // accepted before: only a new edge has a new time
			_, _ = t.Unrelate(ctx, user, declared.Acceptances, again)
			_, _ = t.Relate(ctx, t.Store, user, declared.Acceptances, again, storage.DetailChange{})
		}
	}
}

// roomFor refuses those friends whom a user, who follows as many as one may, does not follow already.
func (t *Relations) roomFor(ctx context.Context, user storage.UserID, friends []storage.UserID, errs []error) {
	limit := t.Rules.Load().MaxFollowing
	if limit == 0 {
		return
	}
	counts := storage.CountLookups.Read(ctx, t.Store, user)[0]
	if counts.Err == nil && counts.Value.Following+int64(len(friends)) <= limit {
		return
	}
	room := limit - counts.Value.Following
	edges := storage.EdgeLookups[storage.Forward].Read(ctx, t.Store, storage.Each(friends, func(friend storage.UserID) storage.Pair { return storage.Pair{From: user, To: friend} })...)
	for i, edge := range edges {
		switch {
		case errs[i] != nil:
		case counts.Err != nil:
			errs[i] = fmt.Errorf("read how many user %s follows: %w", user, counts.Err)
		case edge.Err != nil:
			errs[i] = fmt.Errorf("read whether user %s follows %s: %w", user, friends[i], edge.Err)
		case edge.Value.Type == storage.Following:
		case room <= 0:
			errs[i] = fmt.Errorf("%w: user %s", storage.ErrLimitReached, user)
		default:
			room--
		}
	}
}

// Decline makes a user decline another's request; the other may ask again after a
// pause. [ErrSelf], [storage.ErrNoEdge].
func (t *Relations) Decline(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	return t.decline(ctx, storage.Requests, user, other, storage.EdgeChange{To: user, Type: storage.Declined})
}

// decline ends an edge of another to a user.
func (t *Relations) decline(ctx context.Context, side storage.Side, user, other storage.UserID, change storage.EdgeChange) (Outcome, error) {
	if err := t.visible(user, other); err != nil {
		return Outcome{}, err
	}
	o, err := t.changeEdge(ctx, side, other, change)
	return o, noAsker(err)
}

// noAsker: if the asker does not exist, there is no request.
func noAsker(err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return fmt.Errorf("%w: %w", storage.ErrNoEdge, err)
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
		return fmt.Errorf("%w: user %s is hidden", storage.ErrNoEdge, other)
	}
	return nil
}

// Cancel withdraws a user's request to another. [ErrSelf], [storage.ErrNoEdge].
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
	return t.endOwn(ctx, storage.Requests, user, storage.EdgeChange{To: other, Type: storage.Removed})
}
