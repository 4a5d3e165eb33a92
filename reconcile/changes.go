package reconcile

import (
	"context"
	"errors"

	"kith/storage"
)

// ErrLost means that a log does not go on from a place, or does not say row by row
// what was changed behind it: what has changed since cannot be known. A full scan
// has to look instead.
var ErrLost = errors.New("the log does not tell all that has changed since; run kith reconcile full")

// Changes are the logs in which a store's databases keep what is written.
type Changes interface {
	// Logs are all logs of the store. The rows of one edge in one table are in one log,
	// in the order in which they were written.
	Logs() []Log
}

// A Log tells every row that is written to any table of edges of some shards.
type Log interface {
	// Name tells the log from others, in every run the same.
	Name() string

	// Title is the log's name for people.
	Title() string

	// End is the place behind all that is in the log now.
	End(ctx context.Context) (Place, error)

	// Read gives the rows behind a place to take, some at a time, in order: up to a
	// place, or, where that is empty, on and on. With them comes the place behind them,
	// which may be asked for during the call only. Rows of one transaction come
	// together. There may be calls without rows.
	//
	// Its errors: what take returns; the context's; [ErrLost]; others, after which the
	// same may succeed.
	Read(ctx context.Context, after, upTo Place, take func(rows []Row, at func() (Place, error)) error) error
}

// A Place is a position in a log, as text that only the log understands.
type Place string

// A Row is a row as it was written. One that was deleted has type None at time 0.
type Row = storage.Row

// checkpointOf is the name under which a mode keeps its place in a log.
func checkpointOf(mode Mode, log Log) string { return "reconcile/" + string(mode) + "/" + log.Name() }

// loadPlace returns the kept place of a log, empty where there is none.
func loadPlace(ctx context.Context, checkpoints storage.Checkpoints, mode Mode, log Log) (Place, error) {
	value, _, err := checkpoints.LoadCheckpoint(ctx, checkpointOf(mode, log))
	return Place(value), err
}
