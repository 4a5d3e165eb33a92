package social

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/notify"
)

// Block makes a user block another: follows between them and requests that are pending
// end, in both directions, and there can be no new ones until it is ended.
//
// It is decided on the user's own shard. There its own follow and its own request end
// with it; what the other has towards the user ends on the other's shard, where the
// block is written at once, whatever the redundancy mode. If that shard does not answer
// the block stands all the same, and the outcome is stale: what is left is up to
// replication, to further tries, and to reconcile. Nothing is undone from afar, where
// a late undo could meet a later, rightful follow.
//
// [ErrSelf]; [storage.ErrUserUnknown] tells of the other. [errors.Is] also finds it
// where the user itself is unknown: then the error is a [Gone].
func (t *Relations) Block(ctx context.Context, people People, user, other storage.UserID) (Outcome, error) {
	if err := t.present(ctx, people, user, []storage.UserID{other})[0]; err != nil {
		return Outcome{}, err
	}
	return t.changeBlock(ctx, user, storage.EdgeChange{To: other, Type: storage.Blocking})
}

// Unblock ends a block of the user's. What the block has ended does not come back. Who
// is not blocked, unknown, or hidden is no error: nothing changes.
func (t *Relations) Unblock(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	switch {
	case user == other:
		return Outcome{}, ErrSelf
	case t.HiddenUsers.Has(other):
		return Outcome{}, nil
	}
	return t.changeBlock(ctx, user, storage.EdgeChange{To: other, Type: storage.None, Ends: storage.Blocking})
}

func (t *Relations) changeBlock(ctx context.Context, user storage.UserID, change storage.EdgeChange) (o Outcome, err error) {
	change.At = t.at()
	options := storage.ChangeOptions{Inverse: t.Redundancy.Inline()}
	ctx, end := notify.Whole(ctx)
	defer func() { end(!o.Stale) }()
	r := t.Store.ChangeEdges(ctx, user, []storage.EdgeChange{change}, options)[0]
	if r.Err != nil {
		return Outcome{}, fmt.Errorf("change what user %s blocks: %w", user, gone(user, r.Err))
	}
	written := r.Value.Written()
	if !r.Value.Changed && r.Value.Row.UpdateTime > 0 {
		// Once more: the first time may have ended before it came to the other shard.
		written = []storage.Written{{Row: storage.Row{Side: storage.Forward, Edge: r.Value.Row}}}
	}
	o = Outcome{Row: storage.Row{Side: storage.Forward, Edge: r.Value.Row}, Changed: r.Value.Changed}
	o.Written, o.Stale = t.settle(ctx, written)
	return o, nil
}
