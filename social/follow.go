package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// Follow makes a user follow those of the others who exist, in one transaction, or ask to follow those who are locked.
// Each has its own outcome, in their order: [ErrSelf], [storage.ErrUserUnknown],
// [storage.ErrForbidden], [storage.ErrLimitReached], or a fault. Existing follows stay as they are. If one of two blocks the other,
// neither can follow.
//
// stale reports that the inverse side lags for a reason that waiting does not
// repair. err is set if the user itself is unknown, or its shard did not answer.
func (t *Relations) Follow(ctx context.Context, people storage.Answerer, user storage.UserID, others []storage.UserID) (relations []storage.Result[storage.Changed], stale bool, err error) {
	relations = make([]storage.Result[storage.Changed], len(others))
	kinds := make([]storage.EdgeType, len(others))
	rows, errs := t.present(ctx, people, user, others)
	for i, row := range rows {
		relations[i].Err = errs[i]
		if kinds[i] = storage.Following; row.Value.Locked {
			kinds[i] = storage.Requested
		}
	}
	stale, err = t.change(ctx, user, others, kinds, relations)
	return relations, stale, err
}

func unknown(user storage.UserID) error { return fmt.Errorf("%w: %s", storage.ErrUserUnknown, user) }

// Unfollow ends follows of a user, and requests for them. Unknown users are no error, because nobody follows them. Hidden
// users are treated like unknown ones: their follows stay as they are.
func (t *Relations) Unfollow(ctx context.Context, user storage.UserID, others []storage.UserID) (relations []storage.Result[storage.Changed], stale bool, err error) {
	return t.unfollow(ctx, user, others, storage.None)
}

// RemoveFollower ends the follow of a user by another, as [Relations.Unfollow], or declines the request for one.
func (t *Relations) RemoveFollower(ctx context.Context, user, follower storage.UserID) (relations []storage.Result[storage.Changed], stale bool, err error) {
	return t.unfollow(ctx, follower, []storage.UserID{user}, storage.Denied)
}

func (t *Relations) unfollow(ctx context.Context, user storage.UserID, others []storage.UserID, tombstone storage.EdgeType) (relations []storage.Result[storage.Changed], stale bool, err error) {
	relations = make([]storage.Result[storage.Changed], len(others))
	if t.HiddenUsers.Has(user) {
		return relations, false, unknown(user)
	}
	for i, other := range others {
		if other == user {
			relations[i].Err = ErrSelf
		}
	}
	stale, err = t.change(ctx, user, others, slices.Repeat([]storage.EdgeType{tombstone}, len(others)), relations)
	return relations, stale, err
}

// change writes the edges, of the given types, to those users who have no error yet and are not hidden.
func (t *Relations) change(ctx context.Context, user storage.UserID, others []storage.UserID, kinds []storage.EdgeType, relations []storage.Result[storage.Changed]) (stale bool, err error) {
	at := t.at()
	var changes []storage.EdgeChange
	var index []int
	for i, other := range others {
		if relations[i].Err == nil && !t.HiddenUsers.Has(other) {
			changes = append(changes, storage.EdgeChange{To: other, Type: kinds[i], At: at})
			index = append(index, i)
		}
	}
	if len(changes) == 0 {
		return false, nil
	}
	var written []storage.Written
	for j, r := range t.Store.ChangeEdges(ctx, storage.Forward, user, changes, t.options()) {
		relations[index[j]] = r
		if r.Err != nil && !errors.Is(r.Err, storage.ErrLimitReached) && !errors.Is(r.Err, storage.ErrForbidden) {
			err = fmt.Errorf("change follows of user %s: %w", user, r.Err)
		}
		written = append(written, r.Value.Written()...)
		if kinds[index[j]] == storage.Blocking && !r.Value.Changed && r.Value.Row.UpdateTime > 0 {
			written = append(written, storage.Written{Row: storage.Row{Side: storage.Forward, Edge: r.Value.Row}, Again: true}) // once more, as changeEdge
		}
	}
	if slices.Contains(kinds, storage.Blocking) {
		_, stale = t.settle(ctx, written)
		return stale, err
	}
	return t.propagate(ctx, written), err
}

// propagate hands over rows. stale: other sides are missing, see [Redundancy].
func (t *Relations) propagate(ctx context.Context, written []storage.Written) (stale bool) {
	if len(written) == 0 {
		return false
	}
	ctx, cancel := committed(ctx)
	defer cancel()
	return t.Redundancy.Propagate(ctx, written) != nil
}

// leastTime is how long what follows a commit may take at least: the mode stream waits a second for its Redis.
const leastTime = time.Second

// committed is the context of what has to follow a commit, also if the client has disconnected, or the time of the request or of settle is over.
func committed(ctx context.Context) (context.Context, context.CancelFunc) {
	until, is := ctx.Deadline()
	if !is {
		until = time.Now().Add(settleTime)
	}
	if least := time.Now().Add(leastTime); until.Before(least) {
		until = least
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// options bound how many users one may follow, block, and ask.
func (t *Relations) options() storage.ChangeOptions {
	rules := t.Rules.Load()
	return storage.ChangeOptions{
		MaxFollowing: rules.MaxFollowing, MaxBlocks: rules.MaxFollowing,
		TTL: rules.RequestTTL, Pause: rules.RequestPause, MaxPending: MaxPending, Inverse: t.Redundancy.Inline(),
	}
}

// at reads the clock, once for a request.
func (t *Relations) at() storage.Micros { return storage.MicrosOf(t.Now()) }
