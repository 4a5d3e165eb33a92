package reconcile

import (
	"context"
	"errors"

	"kith/storage"
)

// ErrLost means that a log does not continue from a position, or does not say row by row what was
// changed after it. Later changes cannot be known, and a full scan has to find what they left.
var ErrLost = errors.New("the log does not have all that has changed since; run kith reconcile full")

// Changes are the logs in which a store's databases record what is written.
type Changes interface {
	// Logs returns all logs of the store. All rows of one edge in one table are in one log, in the
	// order in which they were written.
	Logs() []Log
}

// A Log holds every row that is written to any table of edges of some shards.
type Log interface {
	// Name distinguishes the log from others, and is the same in every run.
	Name() string

	// Title is the log's name for people.
	Title() string

	// Begin is the position before everything that the log has ever had; empty if it has none that can be named.
	Begin() LogPosition

	// End is the position after everything that is in the log now.
	End(ctx context.Context) (LogPosition, error)

	// Read passes the rows after a position to take, some at a time, in order. It ends at the position upTo or, if
	// that is empty, goes on without end. take also gets a function that returns the position after the rows, and may
	// call it only during the call. The rows of one transaction are passed together. A call may have no rows.
	//
	// Its errors: those of take; the context's; [ErrLost]; others, after which a retry may succeed.
	Read(ctx context.Context, after, upTo LogPosition, take func(rows []Row, at func() (LogPosition, error)) error) error
}

// A LogPosition is a position in a log, as text that only the log understands.
type LogPosition string

// A Row is a row as it was written. A deleted row has type None at time 0.
type Row = storage.Row

// checkpointOf is the name under which a mode stores its position in a log.
func checkpointOf(mode Mode, log Log) string { return "reconcile/" + string(mode) + "/" + log.Name() }

// loadPositions returns the stored positions of logs, empty where there is none. If other logs have a position, a
// log without one is that of a shard that has been added since: it is read from its beginning, if that can be
// named.
func loadPositions(ctx context.Context, checkpoints storage.Checkpoints, mode Mode, logs []Log) ([]LogPosition, error) {
	positions := make([]LogPosition, len(logs))
	known := false
	for i, l := range logs {
		value, found, err := checkpoints.LoadCheckpoint(ctx, checkpointOf(mode, l))
		if err != nil {
			return nil, err
		}
		positions[i], known = LogPosition(value), known || found
	}
	for i, l := range logs {
		if known && positions[i] == "" {
			positions[i] = l.Begin()
		}
	}
	return positions, nil
}
