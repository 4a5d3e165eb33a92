package social

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/notify"
)

// eraseStep is how many rows of a deleted user are ended at a time.
const eraseStep = 500

// EndAll ends everything between a user who is being deleted and others, in either
// direction and on both sides: follows, blocks, requests and favorites become tombstones, newer than
// the rows they end. It returns nil once it has found all tables empty.
//
// It works in steps, and can be called again after a crash, or when the context has ended:
// the rows on the user's own shard are the list of work, so of each pair
// the row on the other's shard is written first. If a user's shard does not answer, that user is
// skipped, and the error says so.
func (t *Relations) EndAll(ctx context.Context, user storage.UserID) error {
	for {
		found := false
		for _, side := range storage.AllSides {
			some, err := t.endSide(ctx, side, user)
			if err != nil {
				return fmt.Errorf("end the %s rows of user %s: %w", side, user, err)
			}
			found = found || some
		}
		if !found {
			return nil
		}
	}
}

// endSide ends the rows of one table that a user owns.
func (t *Relations) endSide(ctx context.Context, side storage.Side, user storage.UserID) (found bool, err error) {
	var failed error
	for q := (storage.RowsQuery{Owner: user, Limit: eraseStep}); ; {
		r := t.Store.AllRows(ctx, side, []storage.RowsQuery{q})[0]
		if r.Err != nil {
			return found, r.Err
		}
		rows := r.Value
		if len(rows) == 0 {
			return found, failed
		}
		found = true
		last := rows[len(rows)-1].Pair()
		q.After, q.Post = side.Peer(last), last.Post
		if err := t.end(ctx, side, rows); err != nil {
			failed = err
		}
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if len(rows) < q.Limit {
			return found, failed
		}
	}
}

// end makes tombstones of rows as they are on one side. The errors of single rows do
// not keep the others.
func (t *Relations) end(ctx context.Context, side storage.Side, rows []storage.Edge) (failed error) {
	ctx, end := notify.Whole(ctx)
	defer func() { end(failed == nil) }()
	at := t.at()
	ends := make([]storage.Edge, len(rows))
	for i, row := range rows {
		ends[i] = row.Pair().Edge(storage.None, max(at, row.UpdateTime+1))
	}
	truth := side.Truth()
	replica := map[storage.Edge]bool{} // tombstones that are there already
	if side == truth {
		ends, failed = t.overwrite(ctx, truth.Replica(), ends)
		for _, e := range ends {
			replica[e] = true
		}
	}
	ends, err := t.overwrite(ctx, truth, ends)
	if err != nil {
		failed = err
	}
	written := make([]storage.Written, len(ends))
	for i, e := range ends {
		written[i] = storage.Written{Row: storage.Row{Side: truth, Edge: e}, Inverse: replica[e]}
	}
	if _, stale := t.settle(ctx, written); stale && failed == nil {
		failed = fmt.Errorf("%w: not all tombstones are on their other side", storage.ErrUnavailable)
	}
	return failed
}

// overwrite applies tombstones to a side, over rows of any age: one that meets a newer
// row gets a newer time. It returns those that are there now.
func (t *Relations) overwrite(ctx context.Context, side storage.Side, ends []storage.Edge) (there []storage.Edge, failed error) {
	for len(ends) > 0 {
		var again []storage.Edge
		for i, r := range t.Store.Apply(ctx, side, ends, storage.IfNewer) {
			switch row := r.Value.Row; {
			case r.Err != nil:
				failed = r.Err
			case row.Type == storage.None:
				there = append(there, row)
			default:
				newer := ends[i]
				newer.UpdateTime = row.UpdateTime + 1
				again = append(again, newer)
			}
		}
		ends = again
	}
	return there, failed
}
