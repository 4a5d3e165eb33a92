package reconcile

import (
	"context"
	"errors"
	"fmt"

	"kith/replication"
	"kith/storage"
)

// IncrementalReport is the result of a run.
type IncrementalReport struct {
	Rows     int          `json:"rows"`     // read in the logs
	Checked  int          `json:"checked"`  // edges looked up in the tables
	Begun    []string     `json:"begun"`    // titles of logs without a checkpoint: they are read from now on
	Found    map[Kind]int `json:"found"`    // disagreements
	Repaired map[Kind]int `json:"repaired"` // of these
}

// Left is how many disagreements still exist.
func (r IncrementalReport) Left() int { return total(r.Found) - total(r.Repaired) }

// Mark notes the present end of all logs. The function it returns makes that the checkpoint of [Incremental]. A full
// scan calls it at its end, so that the next incremental run looks at what has changed since the
// scan began.
func Mark(ctx context.Context, logs []replication.Log, checkpoints storage.Checkpoints) (keep func(context.Context) error, err error) {
	ends := make([]string, len(logs))
	for i, l := range logs {
		if ends[i], err = l.End(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Title(), err)
		}
	}
	return func(ctx context.Context) error {
		for i, l := range logs {
			if err := checkpoints.SaveCheckpoint(ctx, checkpointOf(ModeIncremental, l), []byte(ends[i])); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// Incremental looks at what has changed since its last run, until now.
//
// It reads the logs of both sides from the checkpoint to their present end and pairs the two halves
// of each edge. If the last halves of an edge differ, it looks the edge up in the tables; an edge
// that differs there, and still does after the window, is a disagreement. A checkpoint moves only
// past edges that are settled. It does not move past a disagreement that is left, because it could
// not be repaired or was not to be. The next run finds it again.
//
// If a log cannot be continued, the error contains [replication.ErrLost]; the other logs are processed all the same.
func Incremental(ctx context.Context, cfg ChangesConfig) (IncrementalReport, error) {
	p := newPairer(cfg, ModeIncremental)
	without, err := p.begin(ctx)
	if err != nil {
		return p.report, err
	}
	for _, l := range without {
		p.report.Begun = append(p.report.Begun, l.Title())
		p.Logger.WarnContext(ctx, "reconcile: no checkpoint yet: starting at the end of the log; run kith reconcile full for earlier changes", "log", l.Title())
	}
	for _, l := range p.logs {
		if l.end, err = l.End(ctx); err != nil {
			return p.report, fmt.Errorf("%s: %w", l.Title(), err)
		}
	}
	err = errors.Join(p.run(ctx)...)
	return p.report, err
}

// Realtime does what [Incremental] does, until the context ends: it looks at what changes now. Several times in each window it looks up the
// edges whose halves have not been the same until then, and repairs those that still differ a window later: one and a half windows after the
// write at most, if all shards answer. It returns an error only if it cannot begin.
//
// Its checkpoints move only past edges that are settled, so after a restart it continues where it
// ended. While a shard does not answer, its edges wait in memory, up to MaxPending; then reading waits, too.
func Realtime(ctx context.Context, cfg ChangesConfig) error {
	p := newPairer(cfg, ModeRealtime)
	_, err := p.begin(ctx)
	if err == nil {
		p.run(ctx) // it ends with the context
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is ended, and whatever failed did so by that
	}
	return err
}
