package replication

import (
	"context"
	"log/slog"

	"kith/storage"
)

// A Propagator writes forward rows to the other sides of their tables. It then does the same with
// what follows from them there, until nothing is left. It is for modes without a log of all forward
// rows. In these modes, rows that a store writes by itself could not be found again: only
// [Propagator.Propagate] propagates a row.
type Propagator struct {
	// Store is the store to write to.
	Store storage.EdgeWriter

	// Publisher publishes rows that are on both sides. Defaults to none.
	Publisher Publisher

	// Logger logs what should not happen. Defaults to slog.Default().
	Logger *slog.Logger
}

// Left is a row that could not be applied, or from which a row followed that could not be.
type Left struct {
	Root int         // index of the row passed to Propagate
	Row  storage.Row // the row to propagate: that one, or one that followed from it
	Err  error
}

// Propagate returns what is left, in the order in which it failed. It may be called again with rows
// that were propagated in part: what followed from a row the first time follows again. Rows whose
// other side is already written are only published.
//
// A row may come again, or after a newer one has been applied, because a first try crashed before
// it propagated what followed from the row. The store then reports again what follows.
func (p Propagator) Propagate(ctx context.Context, rows []storage.Written) []Left {
	if p.Logger == nil {
		p.Logger = slog.Default()
	}
	var there []storage.Row
	work := make([]task, 0, len(rows))
	for i, w := range rows {
		if w.Inverse {
			there = append(there, w.Row)
		} else {
			work = append(work, task{root: i, row: w.Row})
		}
	}
	p.publish(ctx, there)
	var left []Left
	for len(work) > 0 {
		var next []task
		for _, side := range storage.Truths {
			on, failed := p.apply(ctx, side, work)
			next, left = append(next, on...), append(left, failed...)
		}
		work = next
	}
	return left
}

// task is a row that has to be applied.
type task struct {
	root int
	row  storage.Row
	from chain
}

// apply applies the rows of one table and returns the rows to apply next.
func (p Propagator) apply(ctx context.Context, side storage.Side, work []task) (next []task, left []Left) {
	var rows []task
	var edges []storage.Edge
	for _, r := range work {
		if r.row.Side.Truth() == side {
			rows, edges = append(rows, r), append(edges, r.row.Edge)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var done []storage.Row
	for i, r := range p.Store.Apply(ctx, side.Replica(), edges, storage.IfNewer) {
		if r.Err != nil {
			left = append(left, Left{rows[i].root, rows[i].row, r.Err})
			continue
		}
		done = append(done, storage.Row{Side: side, Edge: r.Value.Row})
		if len(r.Value.Also) == 0 {
			continue
		}
		from := rows[i].from.with(rows[i].row)
		missing, there := from.next(r.Value.Also, p.Logger)
		done = append(done, there...)
		for _, row := range missing {
			next = append(next, task{rows[i].root, row, from})
		}
	}
	p.publish(ctx, done)
	return next, left
}

func (p Propagator) publish(ctx context.Context, rows []storage.Row) {
	if p.Publisher != nil && len(rows) > 0 {
		p.Publisher.Publish(ctx, rows)
	}
}
