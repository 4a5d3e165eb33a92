package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kith/storage/sleep"
)

// Incremental looks at what has changed since its last run.
//
// It reads the logs of both sides from the checkpoint to their present end and pairs the two halves
// of each edge. If the last halves of an edge differ, it looks the edge up in the tables; an edge
// that differs there, and still does after the window, is a disagreement. A checkpoint moves only
// past edges that are settled. It does not move past a disagreement that is left, because it could
// not be repaired or was not to be. The next run finds it again.
type Incremental struct {
	ChangesConfig
	mode Mode
}

// NewIncremental makes an Incremental. It does nothing before Run.
func NewIncremental(cfg ChangesConfig) *Incremental {
	return &Incremental{cfg.withDefaults(), ModeIncremental}
}

// IncrementalReport is the result of a run.
type IncrementalReport struct {
	Rows     int          // rows read in the logs
	Checked  int          // edges looked up in the tables
	Found    map[Kind]int // disagreements
	Repaired map[Kind]int // of these
	Begun    []string     // titles of logs without a checkpoint: they are read from now on
}

// Left is how many disagreements still exist.
func (r IncrementalReport) Left() int {
	left := 0
	for kind, n := range r.Found {
		left += n - r.Repaired[kind]
	}
	return left
}

// Mark notes the present end of all logs. The function it returns makes that the checkpoint. A full
// scan calls it at its end, so that the next incremental run looks at what has changed since the
// scan began.
func (i *Incremental) Mark(ctx context.Context) (keep func(context.Context) error, err error) {
	logs := i.Changes.Logs()
	ends := make([]LogPosition, len(logs))
	for k, l := range logs {
		if ends[k], err = l.End(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Title(), err)
		}
	}
	return func(ctx context.Context) error {
		for k, l := range logs {
			if err := i.Checkpoints.SaveCheckpoint(ctx, checkpointOf(i.mode, l), []byte(ends[k])); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// Run looks at what has changed until now. If a log cannot be continued, the error contains
// [ErrLost]; the other logs are processed all the same.
func (i *Incremental) Run(ctx context.Context) (IncrementalReport, error) {
	p := newPairer(i.ChangesConfig, i.mode)
	if err := i.begin(ctx, p); err != nil {
		return p.report, err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(p.logs))
	var readers sync.WaitGroup
	for k, l := range p.logs {
		readers.Go(func() { errs[k] = p.read(reading, l) })
	}
	read := make(chan struct{})
	go func() { readers.Wait(); close(read) }()
	for isRead := false; !isRead; {
		select {
		case <-p.full:
		case <-read:
			isRead = true
		}
		if err := i.settle(ctx, p); err != nil {
			cancel() // the readers wait for room
			<-read
			return p.report, err
		}
	}
	return p.report, errors.Join(errs...)
}

// begin finds out where to begin reading and where to end.
func (i *Incremental) begin(ctx context.Context, p *pairer) error {
	without, err := p.begin(ctx)
	if err != nil {
		return err
	}
	for _, l := range without {
		p.report.Begun = append(p.report.Begun, l.Title())
		i.Logger.WarnContext(ctx, "reconcile: there is no checkpoint; changes are looked at from now on, what was before is for kith reconcile full", "log", l.Title())
	}
	for _, l := range p.logs {
		if l.end, err = l.End(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
	}
	return nil
}

// settle settles what has been read, then stores the positions after it, unless something is left. If an edge changes in
// every window, its newest change is after the rows that have been read from the logs, and is left to the next batch.
func (i *Incremental) settle(ctx context.Context, p *pairer) error {
	b := p.cut()
	p.report.Checked += len(b.edges)
	findings, _, _, err := confirm(ctx, i.Store, b.edges, func(round int) error {
		i.Metrics.OldestUnpaired(i.mode, time.Duration(round)*i.Window)
		return sleep.For(ctx, i.Window)
	})
	if err != nil {
		return err
	}
	i.Metrics.OldestUnpaired(i.mode, 0)
	p.reportFindings(findings...)
	repaired, left, err := p.repair(ctx, findings)
	for _, f := range findings {
		p.report.Found[f.Kind]++
	}
	for _, f := range repaired {
		p.report.Repaired[f.Kind]++
	}
	if err != nil || len(left) > 0 {
		p.left(b, nil)
		return err // the batch is never done, so that no position behind it is stored
	}
	return p.done(ctx, b)
}
