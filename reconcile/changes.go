package reconcile

import (
	"context"

	"kith/replication"
	"kith/storage"
)

// checkpointOf is the name under which a mode stores its position in a log.
func checkpointOf(mode Mode, log replication.Log) string {
	return "reconcile/" + string(mode) + "/" + log.Name()
}

// loadPositions returns the stored positions of logs, empty where there is none. If other logs have a position, a
// log without one is that of a shard that has been added since: it is read from its beginning, if that can be
// named.
func loadPositions(ctx context.Context, checkpoints storage.Checkpoints, mode Mode, logs []replication.Log) ([]string, error) {
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
