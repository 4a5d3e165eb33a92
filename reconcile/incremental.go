package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"kith/internal/sleep"
	"kith/storage"
)

// ChangesConfig configures the modes that read logs.
type ChangesConfig struct {
	Store       RepairStore
	Changes     Changes
	Checkpoints storage.Checkpoints

	// Window is how long the second half of an edge may take. Defaults to 3 s.
	Window time.Duration

	// Repair makes inverse rows match the forward rows. Otherwise disagreements are only reported.
	Repair bool

	// MaxPending bounds the edges in memory. Defaults to 100,000.
	MaxPending int

	// Found is called with each disagreement, by one goroutine at a time. Defaults to none.
	Found func(Finding)

	// BeforeRepair is called with the edges that are about to be repaired. Defaults to none.
	BeforeRepair func([]Key)

	// OnRepair is called with forward rows whose inverse rows were repaired, and with forward rows
	// that followed from these repairs, for caches and subscriptions. Defaults to none.
	OnRepair func(ctx context.Context, rows []storage.Row)

	// Metrics counts. Defaults to none.
	Metrics *Metrics

	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// common is shared by both modes.
type common struct {
	ChangesConfig
	mode Mode
}

func newCommon(cfg ChangesConfig, mode Mode) common {
	if cfg.Window <= 0 {
		cfg.Window = 3 * time.Second
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 100_000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return common{cfg, mode}
}

// Incremental looks at what has changed since its last run.
//
// It reads the logs of both sides from the checkpoint to their present end and pairs the two halves
// of each edge. If the last halves of an edge differ, it looks the edge up in the tables; an edge
// that differs there, and still does after the window, is a disagreement. A checkpoint moves only
// past edges that are settled. It does not move past a disagreement that is left, because it could
// not be repaired or was not to be. The next run finds it again.
type Incremental struct{ common }

// NewIncremental makes an Incremental. It does nothing before Run.
func NewIncremental(cfg ChangesConfig) *Incremental {
	return &Incremental{newCommon(cfg, ModeIncremental)}
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
	r := &incrementalRun{
		Incremental: i,
		pending:     map[Key]*halves{},
		report:      IncrementalReport{Found: map[Kind]int{}, Repaired: map[Kind]int{}, Begun: []string{}},
	}
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(r.logs))
	var wg sync.WaitGroup
	for k, l := range r.logs {
		wg.Go(func() {
			if errs[k] = r.read(reading, l); errors.Is(errs[k], errDealing) {
				cancel() // the others would run into the same error
			}
		})
	}
	wg.Wait()
	err := errors.Join(errs...)
	if ctx.Err() != nil || errors.Is(err, errDealing) {
		return r.report, errors.Join(ctx.Err(), err)
	}
	return r.report, errors.Join(err, r.settle(ctx))
}

// errDealing means that edges could not be looked up, or positions not stored.
var errDealing = errors.New("incremental reconcile cannot go on")

// incrementalRun is the state of one run.
type incrementalRun struct {
	*Incremental
	logs []*logToEnd

	mu      sync.Mutex // one batch is collected, and settled, at a time
	pending map[Key]*halves
	rows    int  // since positions were stored
	held    bool // something is left: positions are no longer stored
	report  IncrementalReport
}

// logToEnd is a log between two positions.
type logToEnd struct {
	Log
	at, end LogPosition
	kept    LogPosition
}

// rowsAtOnce is how many rows are read before positions are stored.
const rowsAtOnce = 200_000

// begin finds out where to begin reading and where to end.
func (r *incrementalRun) begin(ctx context.Context) error {
	logs := r.Changes.Logs()
	positions, err := loadPositions(ctx, r.Checkpoints, r.mode, logs)
	if err != nil {
		return err
	}
	for i, l := range logs {
		at := positions[i]
		end, err := l.End(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
		log := &logToEnd{Log: l, at: at, end: end, kept: at}
		if at == "" {
			if err := r.keep(ctx, log, end); err != nil {
				return err
			}
			log.at = end
			r.report.Begun = append(r.report.Begun, l.Title())
			r.Logger.WarnContext(ctx, "reconcile: there is no checkpoint; changes are looked at from now on, what was before is for kith reconcile full", "log", l.Title())
		}
		r.logs = append(r.logs, log)
	}
	return nil
}

// read reads a log to its end, and continues after interruptions.
func (r *incrementalRun) read(ctx context.Context, l *logToEnd) error {
	const tries = 5
	for try := 1; ; try++ {
		before := l.at
		err := l.Read(ctx, l.at, l.end, func(rows []Row, at func() (LogPosition, error)) error { return r.take(ctx, l, rows, at) })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.Is(err, errDealing):
			return err
		case errors.Is(err, ErrLost):
			r.Metrics.Lost(r.mode)
			r.Logger.ErrorContext(ctx, "reconcile: changes are lost; run kith reconcile full", "log", l.Title(), "error", err)
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
		if l.at != before {
			try = 1
		}
		if try >= tries {
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
		r.Logger.WarnContext(ctx, "reconcile: a log is interrupted; trying again", "log", l.Title(), "error", err)
		if err := sleep.For(ctx, time.Duration(try)*200*time.Millisecond); err != nil {
			return err
		}
	}
}

// take adds rows to the batch, and settles the batch when it is full. Readers of other logs wait
// for that.
func (r *incrementalRun) take(ctx context.Context, l *logToEnd, rows []Row, at func() (LogPosition, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		k := keyOf(row)
		h := r.pending[k]
		if h == nil {
			h = &halves{key: k}
			r.pending[k] = h
		}
		if h.note(row); h.paired() {
			delete(r.pending, k)
		}
		if len(r.pending) >= r.MaxPending { // the stored position is still before these rows
			if err := r.settle(ctx); err != nil {
				return err
			}
		}
	}
	r.rows += len(rows)
	r.report.Rows += len(rows)
	position, err := at()
	if err != nil {
		return err
	}
	l.at = position
	if r.rows >= rowsAtOnce {
		return r.settle(ctx)
	}
	return nil
}

// settle settles the batch, then stores the positions after it.
func (r *incrementalRun) settle(ctx context.Context) error {
	edges := slices.Collect(maps.Values(r.pending))
	findings, err := r.examine(ctx, edges)
	if err != nil {
		return fmt.Errorf("%w: %w", errDealing, err)
	}
	r.reportFindings(findings...)
	repaired, left, err := r.repair(ctx, findings)
	for _, f := range findings {
		r.report.Found[f.Kind]++
	}
	for _, f := range repaired {
		r.report.Repaired[f.Kind]++
	}
	r.held = r.held || len(left) > 0
	if err != nil {
		return fmt.Errorf("%w: %w", errDealing, err)
	}
	clear(r.pending)
	r.rows = 0
	if r.held {
		return nil
	}
	for _, l := range r.logs {
		if err := r.keep(ctx, l, l.at); err != nil {
			return fmt.Errorf("%w: %w", errDealing, err)
		}
	}
	return nil
}

// keep makes a position the log's checkpoint.
func (r *incrementalRun) keep(ctx context.Context, l *logToEnd, at LogPosition) error {
	if at == l.kept {
		return nil
	}
	l.kept = at
	return r.Checkpoints.SaveCheckpoint(ctx, checkpointOf(r.mode, l), []byte(at))
}

// examine returns the edges that disagree in the tables, see [Confirm]. If an edge changes in every
// window, its newest change is after the rows that have been read from the logs, and is left to the
// next batch.
func (r *incrementalRun) examine(ctx context.Context, edges []*halves) ([]Finding, error) {
	r.report.Checked += len(edges)
	findings, _, err := confirm(ctx, r.Store, edges, func(round int) error {
		r.Metrics.OldestUnpaired(r.mode, time.Duration(round)*r.Window)
		return sleep.For(ctx, r.Window)
	})
	if err == nil {
		r.Metrics.OldestUnpaired(r.mode, 0)
	}
	return findings, err
}
