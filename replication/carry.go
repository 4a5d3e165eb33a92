package replication

import (
	"context"
	"log/slog"

	"kith/storage"
	"kith/storage/notify"
)

// A Carrier writes forward rows to the other sides of their tables. It then does the same with what
// follows from them there, until nothing is left. It is for modes without a log of all forward
// rows, in which rows that a store writes by itself could not be found again: nothing but
// [Carrier.Carry] carries a row.
type Carrier struct {
	// Store is the store to write to.
	Store storage.EdgeWriter

	// Publisher is told what is on both sides. Defaults to none.
	Publisher Publisher

	// Logger logs what should not happen. Defaults to slog.Default().
	Logger *slog.Logger
}

// Left is a row that could not be applied, or from which a row followed that could not be.
type Left struct {
	Root int         // index of the row passed to Carry
	Row  storage.Row // the row to carry: that one, or one that followed from it
	Err  error
}

// Carry returns what is left, in the order in which it failed. It may be called again with rows that were carried in part: what
// followed from a row the first time follows again. Rows whose other side is already written are
// only published.
//
// A row may come again, or after a newer one has been applied, because a first try crashed before
// it carried what followed from the row. The store then reports again what follows.
func (c Carrier) Carry(ctx context.Context, rows []storage.Written) []Left {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	ctx, end := notify.Whole(ctx)
	left := c.carry(ctx, rows)
	end(len(left) == 0)
	return left
}

func (c Carrier) carry(ctx context.Context, rows []storage.Written) []Left {
	var there []storage.Row
	work := make([]carried, 0, len(rows))
	for i, w := range rows {
		if w.Inverse {
			there = append(there, w.Row)
		} else {
			work = append(work, carried{i, w.Row, nil})
		}
	}
	c.publish(ctx, there)
	var left []Left
	for len(work) > 0 {
		var next []carried
		for _, side := range truths {
			on, failed := c.apply(ctx, side, work)
			next, left = append(next, on...), append(left, failed...)
		}
		work = next
	}
	return left
}

// truths are the forward tables in the order in which they are applied.
var truths = [...]storage.Side{storage.Forward, storage.Requests}

// carried is a row under way.
type carried struct {
	root int
	row  storage.Row
	from *chain
}

// apply applies the rows of one table and returns the rows to apply next.
func (c Carrier) apply(ctx context.Context, side storage.Side, work []carried) (next []carried, left []Left) {
	var rows []carried
	var edges []storage.Edge
	for _, r := range work {
		if r.row.Side.Truth() == side {
			rows, edges = append(rows, r), append(edges, r.row.Edge)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var tell []storage.Row
	for i, r := range c.Store.Apply(ctx, side.Replica(), edges, storage.IfNewer) {
		if r.Err != nil {
			left = append(left, Left{rows[i].root, rows[i].row, r.Err})
			continue
		}
		tell = append(tell, storage.Row{Side: side, Edge: r.Value.Row})
		on, there := rows[i].followed(r.Value.Also, c.Logger)
		next, tell = append(next, on...), append(tell, there...)
	}
	c.publish(ctx, tell)
	return next, left
}

// followed returns those rows that followed from a row and must be carried on, and those that are
// on both sides.
func (r carried) followed(also []storage.Written, logger *slog.Logger) (next []carried, there []storage.Row) {
	if len(also) == 0 {
		return nil, nil
	}
	from := r.from.behind(r.row)
	carry, there := from.next(also, logger)
	for _, row := range carry {
		next = append(next, carried{r.root, row, from})
	}
	return next, there
}

func (c Carrier) publish(ctx context.Context, rows []storage.Row) {
	if c.Publisher != nil && len(rows) > 0 {
		c.Publisher.Publish(ctx, rows)
	}
}
