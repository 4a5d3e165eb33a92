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

	"kith/graph/defaults"
	"kith/replication"
	"kith/storage"
	"kith/storage/sleep"
)

// ChangesConfig configures the modes that read logs.
type ChangesConfig struct {
	Store       RepairStore
	Logs        []replication.Log // all of the store: the rows of one edge in one table are in one log, or in several if buckets have moved
	Checkpoints storage.Checkpoints

	// Window is how long the second half of an edge may take. Defaults to 3 s.
	Window time.Duration

	// Repair makes inverse rows match the forward rows. Otherwise disagreements are only reported.
	Repair bool

	// MaxPending is how many edges may be in memory before reading waits. What each log passes at once may come on top.
	// Defaults to 100,000.
	MaxPending int

	// Found is called with each disagreement, by one goroutine at a time. Defaults to none.
	Found func(Finding)

	// OnRepair is called with forward rows whose inverse rows were repaired, and with forward rows
	// that followed from these repairs, for caches and subscriptions. Defaults to none.
	OnRepair func(ctx context.Context, rows []storage.Row)

	// Metrics counts. Defaults to none.
	Metrics *Metrics

	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// A pairer reads the logs of both sides and pairs the two halves of each edge. Edges whose last halves differ are collected in
// batches, to be looked up in the tables. Once all batches up to one are done, so is everything in the logs up to the
// positions of that one, which become the checkpoints.
type pairer struct {
	ChangesConfig
	mode Mode
	logs []*pairedLog
	full sleep.Waker // when a reader waits for room

	mu      sync.Mutex
	room    *sync.Cond
	open    map[Key]*halves // of the batch that is being collected
	rows    int             // read for it
	batches []*batch        // collected and not done, and those that wait for them; oldest first
	report  IncrementalReport

	dealing sync.Mutex // findings are told and repaired by one goroutine at a time
	keeping sync.Mutex // and checkpoints stored
}

// A pairedLog is a log, with how far it has been read.
type pairedLog struct {
	replication.Log
	end   string    // empty: it is read for ever
	at    string    // no row before it is unknown to the batches
	noted time.Time // when at was noted
	kept  string    // its checkpoint
}

// A batch is edges that have to be looked up, and how far the logs were read then.
type batch struct {
	edges  []*halves
	ends   map[*pairedLog]string
	isDone bool
}

const (
	// rowsAtOnce is how many rows are read before positions are stored.
	rowsAtOnce = 200_000

	// notedEvery is how often the position in a log is noted, which costs more than a row.
	notedEvery = 200 * time.Millisecond
)

func newPairer(cfg ChangesConfig, mode Mode) *pairer {
	cfg = defaults.For(cfg, ChangesConfig{Window: DefaultWindow, MaxPending: 100_000, Metrics: NewMetrics(nil), Logger: slog.Default()})
	p := &pairer{
		ChangesConfig: cfg, mode: mode, full: make(sleep.Waker, 1), open: map[Key]*halves{},
		report: IncrementalReport{Found: map[Kind]int{}, Repaired: map[Kind]int{}, Begun: []string{}},
	}
	p.room = sync.NewCond(&p.mu)
	return p
}

// begin finds out where to begin reading. Logs without a checkpoint are read from now on.
func (p *pairer) begin(ctx context.Context) (without []replication.Log, err error) {
	logs := p.Logs
	positions, err := loadPositions(ctx, p.Checkpoints, p.mode, logs)
	if err != nil {
		return nil, err
	}
	for i, l := range logs {
		at := positions[i]
		if at == "" {
			without = append(without, l)
			if at, err = p.anew(ctx, l); err != nil {
				return nil, fmt.Errorf("%s: %w", l.Title(), err)
			}
		}
		p.logs = append(p.logs, &pairedLog{Log: l, at: at, kept: at})
	}
	return without, nil
}

// anew makes the present end of a log its checkpoint.
func (p *pairer) anew(ctx context.Context, l replication.Log) (string, error) {
	at, err := l.End(ctx)
	if err == nil {
		err = p.Checkpoints.SaveCheckpoint(ctx, checkpointOf(p.mode, l), []byte(at))
	}
	return at, err
}

// read reads a log to its end, and continues after interruptions. If the log has no end, it does so until the context ends, and
// where changes are lost it goes on from now.
func (p *pairer) read(ctx context.Context, l *pairedLog) error {
	const tries, shortest, longest = 5, 100 * time.Millisecond, 5 * time.Second
	stop := context.AfterFunc(ctx, func() { p.mu.Lock(); defer p.mu.Unlock(); p.room.Broadcast() })
	defer stop()
	pause := shortest
	for try := 1; ; try++ {
		before := p.position(l)
		err := l.Read(ctx, nil, before, l.end, func(c replication.Changed) error { return p.take(ctx, l, c) })
		isLost := errors.Is(err, replication.ErrLost)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && l.end != "":
			p.note(l, l.end)
			return nil
		case isLost:
			p.Metrics.Lost(p.mode)
			p.Logger.ErrorContext(ctx, "reconcile: changes were missed: run kith reconcile full", "log", l.Title(), "error", err)
		case err != nil:
			p.Logger.WarnContext(ctx, "reconcile: cannot read a log: retrying", "log", l.Title(), "error", err)
		}
		if p.position(l) != before {
			try, pause = 1, shortest
		}
		if l.end != "" && (isLost || try >= tries) {
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
		if isLost {
			if at, err := p.anew(ctx, l); err == nil {
				p.jump(l, at)
			}
		}
		if err := sleep.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longest)
	}
}

func (p *pairer) position(l *pairedLog) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.at
}

func (p *pairer) note(l *pairedLog, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.at = at
}

// jump continues from a position that does not follow what was read before.
func (p *pairer) jump(l *pairedLog, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.at = to
	for _, b := range p.batches {
		b.ends[l] = to // or the old position would be stored again
	}
}

// take adds rows to the batch. If there is no room, it waits until the batch has been taken.
func (p *pairer) take(ctx context.Context, l *pairedLog, c replication.Changed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, row := range c.Rows {
		k := keyOf(row)
		h := p.open[k]
		if h == nil {
			h = &halves{key: k, since: now}
			p.open[k] = h
		}
		if h.note(row); h.paired() {
			delete(p.open, k)
		}
	}
	p.rows += len(c.Rows)
	p.report.Rows += len(c.Rows)
	if now.Sub(l.noted) >= notedEvery {
		position, err := c.At()
		if err != nil {
			return err
		}
		l.at, l.noted = position, now
	}
	for p.isFull() && ctx.Err() == nil {
		if p.rows > 0 { // otherwise batches that are being settled take the room
			p.full.Wake()
		}
		p.room.Wait()
	}
	return ctx.Err()
}

func (p *pairer) isFull() bool {
	edges := len(p.open)
	for _, b := range p.batches {
		edges += len(b.edges)
	}
	return edges >= p.MaxPending || p.rows >= rowsAtOnce
}

// cut ends the batch that is being collected.
func (p *pairer) cut() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Checked += len(p.open)
	b := &batch{edges: slices.Collect(maps.Values(p.open)), ends: make(map[*pairedLog]string, len(p.logs))}
	for _, l := range p.logs {
		b.ends[l] = l.at
	}
	p.open, p.rows = map[Key]*halves{}, 0
	p.batches = append(p.batches, b)
	p.room.Broadcast()
	return b
}

// left says which edges of a batch are not settled yet.
func (p *pairer) left(b *batch, edges []*halves) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.edges = edges
	p.room.Broadcast()
}

// done ends a batch, and stores the positions up to which all batches are done.
func (p *pairer) done(ctx context.Context, b *batch) error {
	p.keeping.Lock()
	defer p.keeping.Unlock()
	p.left(b, nil)
	p.mu.Lock()
	b.isDone = true
	var ends map[*pairedLog]string
	for len(p.batches) > 0 && p.batches[0].isDone {
		ends = p.batches[0].ends
		p.batches = p.batches[1:]
	}
	p.mu.Unlock()
	for l, at := range ends {
		if at == l.kept {
			continue
		}
		if err := p.Checkpoints.SaveCheckpoint(ctx, checkpointOf(p.mode, l), []byte(at)); err != nil {
			return err
		}
		l.kept = at
	}
	return nil
}

// halves is what the logs have said of one edge's rows so far: the last row of each side.
type halves struct {
	key   Key
	last  [2]storage.Edge // forward and inverse
	seen  [2]bool
	mixed bool      // rows of one side came out of order, from several logs
	since time.Time // when the first of them was read
}

func (h *halves) note(r storage.Row) {
	half := r.Side - r.Side.Truth()
	h.mixed = h.mixed || r.Edge.UpdateTime < h.last[half].UpdateTime
	h.last[half], h.seen[half] = r.Edge, true
}

// paired reports whether the last rows of both sides are the same, for sure.
func (h *halves) paired() bool { return !h.mixed && h.seen[0] && h.seen[1] && h.last[0] == h.last[1] }

// settled reports whether an edge's rows agree, and are what the logs say: a row may be in a log a
// moment before readers see it in its table.
func (h *halves) settled(r bothRows) bool {
	if r.forward != r.inverse {
		return false
	}
	for half, last := range h.last {
		if h.seen[half] && last != r.forward {
			return false
		}
	}
	return true
}
