package social

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// Block makes a user block another: follows and pending requests between them
// end, in both directions, and there can be no new ones until the block ends.
//
// It is decided on the user's own shard, where the user's own follow and request end
// in the same transaction. Those of the other user end on the other's shard, where the
// block is written at once, in every redundancy mode. If that shard does not answer, the block
// remains and the outcome is stale: replication, a retry or reconcile does the rest. Follows and
// requests are ended only on their own shard, because a late change from another shard could end a
// later, valid follow.
//
// Errors: [ErrSelf]; [storage.ErrUserUnknown] for the other. If the user itself is
// unknown, the error is a [ActorMissing], for which [errors.Is] finds [storage.ErrUserUnknown] too.
func (t *Relations) Block(ctx context.Context, people storage.Answerer, user, other storage.UserID) (Outcome, error) {
	return t.begin(ctx, people, storage.Forward, user, storage.EdgeChange{To: other, Type: storage.Blocking})
}

// begin changes an edge of a user to another, who exists and is not hidden.
func (t *Relations) begin(ctx context.Context, people storage.Answerer, side storage.Side, user storage.UserID, change storage.EdgeChange) (Outcome, error) {
	if _, errs := t.present(ctx, people, user, []storage.UserID{change.To}); errs[0] != nil {
		return Outcome{}, errs[0]
	}
	o, err := t.changeEdge(ctx, side, user, change)
	return o, gone(user, err)
}

// BlockMany is [Relations.Block] of many in one transaction, each with its own outcome, in their order: [storage.ErrLimitReached], too.
// err is set if the user itself is unknown, or its shard did not answer.
func (t *Relations) BlockMany(ctx context.Context, people storage.Answerer, user storage.UserID, others []storage.UserID) (blocks []storage.Result[storage.Changed], stale bool, err error) {
	blocks = make([]storage.Result[storage.Changed], len(others))
	_, errs := t.present(ctx, people, user, others)
	for i, err := range errs {
		blocks[i].Err = err
	}
	stale, err = t.change(ctx, user, others, slices.Repeat([]storage.EdgeType{storage.Blocking}, len(others)), blocks)
	return blocks, stale, err
}

// Unblock ends a block by the user. It does not restore what the block has ended. If the
// other is not blocked, unknown, or hidden, nothing changes, without an error.
func (t *Relations) Unblock(ctx context.Context, user, other storage.UserID) (Outcome, error) {
	return t.endOwn(ctx, storage.Forward, user, storage.EdgeChange{To: other, Type: storage.None, Ends: storage.Blocking})
}

// endOwn ends an edge of a user to another. There is none to a hidden user.
func (t *Relations) endOwn(ctx context.Context, side storage.Side, user storage.UserID, change storage.EdgeChange) (Outcome, error) {
	switch {
	case user == change.To:
		return Outcome{}, ErrSelf
	case t.HiddenUsers.Has(change.To):
		return Outcome{}, nil
	}
	o, err := t.changeEdge(ctx, side, user, change)
	return o, gone(user, err)
}

// changeEdge changes an edge of a user, and writes it to the other's shard at once.
func (t *Relations) changeEdge(ctx context.Context, side storage.Side, user storage.UserID, change storage.EdgeChange) (Outcome, error) {
	change.At = t.at()
	o, err := t.writeEdge(ctx, side, user, change)
	if err == nil {
		o.Written, o.Stale = t.settle(ctx, o.Written)
	}
	return o, err
}

// writeEdge changes an edge on the user's own shard.
func (t *Relations) writeEdge(ctx context.Context, side storage.Side, user storage.UserID, change storage.EdgeChange) (Outcome, error) {
	r := t.Store.ChangeEdges(ctx, side, user, []storage.EdgeChange{change}, t.options())[0]
	if r.Err != nil {
		return Outcome{}, fmt.Errorf("change the %s of user %s to %s: %w", side, user, change.To, r.Err)
	}
	o := Outcome{Row: storage.Row{Side: side, Edge: r.Value.Row}, Changed: r.Value.Changed, Written: r.Value.Written()}
	if !o.Changed && o.Row.Edge.UpdateTime > 0 {
		// Once more: the first call may have ended before the row reached the other shard, and what followed from a request.
		o.Written = []storage.Written{{Row: o.Row, Again: true}}
		if side == storage.Requests {
			if follow := storage.EdgeLookups[storage.Forward].Read(ctx, t.Store, o.Row.Edge.Pair())[0]; follow.Value.UpdateTime > 0 {
				o.Written = append(o.Written, storage.Written{Row: storage.Row{Side: storage.Forward, Edge: follow.Value}, Again: true})
			}
		}
	}
	return o, nil
}
