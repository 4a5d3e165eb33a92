package reconcile

import (
	"context"

	"kith/storage"
)

// A Log holds every row that is written to any table of edges of some shards.
type Log interface {
	// Name distinguishes the log from others, and is the same in every run.
	Name() string

	// Title is the log's name for people.
	Title() string

	// Begin is the position before everything that the log has ever had; empty if it has none that can be named.
	Begin() string

	// End is the position after everything that is in the log now. Positions are text that only the log understands.
	End(ctx context.Context) (string, error)

	// Read passes the rows after a position to take, some at a time, in order. It ends at the position upTo or, if
	// that is empty, goes on without end. take also gets a function that returns the position after the rows, and may
	// call it only during the call. The rows of one transaction are passed together. A call may have no rows. A deleted row has type
	// None at time 0.
	//
	// Its errors: those of take; the context's; [replication.ErrLost]; others, after which a retry may succeed.
	Read(ctx context.Context, after, upTo string, take func(rows []storage.Row, at func() (string, error)) error) error
}

// checkpointOf is the name under which a mode stores its position in a log.
func checkpointOf(mode Mode, log Log) string { return "reconcile/" + string(mode) + "/" + log.Name() }

// loadPositions returns the stored positions of logs, empty where there is none. If other logs have a position, a
// log without one is that of a shard that has been added since: it is read from its beginning, if that can be
// named.
func loadPositions(ctx context.Context, checkpoints storage.Checkpoints, mode Mode, logs []Log) ([]string, error) {
	positions := make([]string, len(logs))
	known := false
	for i, l := range logs {
		value, found, err := checkpoints.LoadCheckpoint(ctx, checkpointOf(mode, l))
		if err != nil {
			return nil, err
		}
		positions[i], known = string(value), known || found
	}
	for i, l := range logs {
		if known && positions[i] == "" {
			positions[i] = l.Begin()
		}
	}
	return positions, nil
}
