package social

import (
	"context"
	"fmt"
	"sync"

	"kith/storage"
)

// eraseStep is how many rows of a deleted user are ended at a time.
const eraseStep = 500

// EndAll ends everything between a user who is being deleted and others, in either
// direction and on both sides: follows, blocks, requests and favorites become tombstones, newer than
// the rows they end. It returns nil once it has found all tables empty.
//
// It works in steps, and can be called again after a crash, or when the context has ended, and goes on where it was then, if it is in
// the same process:
// the rows on the user's own shard are the list of work, so for each pair the row on the other
// user's shard is written first. If a user's shard does not answer, that user is skipped, and the
// error says so.
func (t *Relations) EndAll(ctx context.Context, user storage.UserID) error {
	for {
		found, err := t.endOnce(ctx, user)
		if err != nil {
			return fmt.Errorf("end the rows of user %s: %w", user, err)
		}
		if !found {
			return nil
		}
	}
}

// pass is one pass through the rows that a user owns, of all tables.
type pass struct {
	queries []storage.RowsQuery // for the next rows
	found   bool                // there have been some
}

// passes are those that were not completed: a hundred million rows that have ended are passed over more slowly than a sweep may take.
type passes struct {
	mu sync.Mutex
	of map[storage.UserID]pass
}

// mostPasses is how many are kept. Other gateways may complete a deletion.
const mostPasses = 1000

// take takes the pass of a user, or a new one.
func (p *passes) take(user storage.UserID) pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, kept := p.of[user]
	delete(p.of, user)
	if !kept {
		was.queries = storage.Each(storage.AllSides[:], func(side storage.Side) storage.RowsQuery {
			return storage.RowsQuery{Side: side, Owner: user, Limit: eraseStep, Any: true} // millions may have ended by now
		})
	}
	return was
}

func (p *passes) keep(user storage.UserID, is pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.of) == mostPasses {
		clear(p.of)
	}
	p.of[user] = is
}

// endOnce goes once through the rows of a user, or completes the last pass.
func (t *Relations) endOnce(ctx context.Context, user storage.UserID) (found bool, failed error) {
	is := t.passes.take(user)
	for len(is.queries) > 0 {
		rows, further, err := t.nextRows(ctx, is.queries)
		if err != nil {
			t.passes.keep(user, is)
			return is.found, err
		}
		is.found = is.found || len(rows) > 0
		left, err := t.end(ctx, user, rows)
		if err != nil {
			failed = err
		}
		if ctx.Err() != nil {
			t.passes.keep(user, is) // some of these rows may not have ended
			return is.found, ctx.Err()
		}
		for i := range further {
			further[i].Skip += left[further[i].Side]
		}
		is.queries = further
	}
	return is.found, failed
}

// nextRows lists rows of a user for one step, and returns the queries for the next step.
func (t *Relations) nextRows(ctx context.Context, queries []storage.RowsQuery) (rows []storage.Row, further []storage.RowsQuery, err error) {
	for i, r := range storage.RowLookups.Read(ctx, t.Store, queries...) {
		q := queries[i]
		if r.Err != nil {
			return nil, nil, r.Err
		}
		taken := 0
		for ; taken < len(r.Value) && len(rows) < eraseStep; taken++ {
			e := r.Value[taken]
			q.After, q.Item = q.Side.Peer(e.Pair()), e.Item
			if e.Type != storage.None {
				rows = append(rows, storage.Row{Side: q.Side, Edge: e})
			}
		}
		if taken < len(r.Value) || len(r.Value) == q.Limit {
			further = append(further, q)
		}
	}
	return rows, further, nil
}

// end turns rows into tombstones, on both sides. An error of one row does not keep the others from
// ending. left is how many rows of each side have not ended.
func (t *Relations) end(ctx context.Context, user storage.UserID, rows []storage.Row) (left [len(storage.AllSides)]int, failed error) {
	var written []storage.Written
	for i, r := range t.Store.EndEdges(ctx, user, rows, t.at()) {
		if r.Err != nil {
			failed = r.Err
		}
		if r.Found {
			written = append(written, storage.Written{Row: storage.Row{Side: rows[i].Side.Truth(), Edge: r.Value}, Inverse: true})
		} else {
			left[rows[i].Side]++
		}
	}
	if _, stale := t.settle(ctx, written); stale && failed == nil {
		failed = fmt.Errorf("%w: not all tombstones have been handed on", storage.ErrUnavailable)
	}
	return left, failed
}
