package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/storage"
)

// FullStore is what a full scan needs of a store.
type FullStore interface {
	RepairStore
	storage.Comparer
	storage.Checkpoints
}

// FullConfig says how a full scan is done.
type FullConfig struct {
	Store FullStore

	// Repair repairs what is found. Defaults to a dry run.
	Repair bool

	// Restart begins anew where an earlier scan could be gone on with.
	Restart bool

	// Window is how long the inverse side may lag: what differs is read again after
	// it. Defaults to 3 s.
	Window time.Duration

	// MaxLoad is the share of time in which statements may run on each shard, above 0
	// and at most 1. Defaults to 0.5.
	MaxLoad float64

	// Owners is how many users one statement looks at. Defaults to 20,000.
	Owners int

	// GroupRows is how many rows a group that differs should have at most when it is
	// read: larger ones are cut into smaller ones first, which takes another pass of
	// digests over the classes that differ. Defaults to 200.
	GroupRows int64

	// SliceRows is how many rows of one side are held in memory to be compared one by
	// one, at about 100 bytes each. Defaults to 300,000. A scan that is gone on with
	// keeps what it began with.
	SliceRows int64

	// List is how many findings the report lists; all are counted, and repaired.
	// Defaults to 10,000; 50,000 at most.
	List int

	// SaveEvery is how much work a kill may lose. Defaults to 2 s.
	SaveEvery time.Duration

	// OnProgress is told how far the scan is, from several goroutines, one at a time.
	// Defaults to nobody.
	OnProgress func(Progress)

	// Logger is told of what is tried again. Defaults to slog.Default().
	Logger *slog.Logger
}

// Defaults of [FullConfig].
const (
	DefaultWindow  = 3 * time.Second
	DefaultMaxLoad = 0.5
)

func (c FullConfig) withDefaults() FullConfig {
	if c.Window <= 0 {
		c.Window = DefaultWindow
	}
	if c.MaxLoad <= 0 {
		c.MaxLoad = DefaultMaxLoad
	}
	if c.Owners < 1 {
		c.Owners = 20_000
	}
	if c.GroupRows < 1 {
		c.GroupRows = 200
	}
	if c.SliceRows < 1 {
		c.SliceRows = 300_000
	}
	if c.List < 1 {
		c.List = 10_000
	}
	c.List = min(c.List, mostListed)
	if c.SaveEvery <= 0 {
		c.SaveEvery = 2 * time.Second
	}
	if c.OnProgress == nil {
		c.OnProgress = func(Progress) {}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Full compares both sides of all edges, in both pairs of tables, and all counts with
// their rows, and looks for follows that a block forbids.
//
// First the databases add up digests, of every group of edges on both sides; then, of
// what differs, those of smaller groups. Groups that differ there are read and
// compared row by row. What then differs is read again after the window, and is a
// finding only if it has stayed as it was: so writers may write all the while. At
// last the counts are compared. One pair of tables comes after the other.
//
// How far it has come is kept in the store, partial sums included: a scan that ends
// early goes on from there, and skips nothing. Its report holds what was found
// before, and so has the [Status] that it saves at its end. When the context ends, so
// does the scan, with the context's error.
func Full(ctx context.Context, cfg FullConfig) (Report, error) {
	f := newFull(cfg)
	if err := f.begin(ctx); err != nil {
		return Report{}, err
	}
	err := f.run(ctx)
	if err == nil {
		err = ctx.Err() // there is no leaving word any more
	}
	if err != nil {
		f.saveAtEnd(ctx)
		return f.report(), err
	}
	return f.finish(ctx)
}

// A full is one run of a full scan.
type full struct {
	cfg   FullConfig
	pace  throttle
	store paced
	plan  plan
	began time.Time // of this run

	shards int
	ending sync.Mutex // held while forbidden follows are ended

	mu     sync.Mutex // guards what follows
	state  state
	saved  time.Time
	slices int   // that there are, once the digests are in
	behind int64 // work that was done on the pairs before, see [full.progress]
	meter  meter
}

func newFull(cfg FullConfig) *full {
	cfg = cfg.withDefaults()
	f := &full{cfg: cfg, pace: throttle{cfg.MaxLoad}, shards: cfg.Store.Shards(), began: time.Now()}
	f.store = paced{cfg.Store, f.pace}
	return f
}

// begin finds out where to go on, and what there is to do.
func (f *full) begin(ctx context.Context) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	p, err := newPlan(ctx, f.cfg.Store, f.cfg.Owners)
	f.plan = p
	f.behind = int64(f.state.Pair) * 2 * f.stretches()
	f.saved = time.Now()
	return err
}

func (f *full) run(ctx context.Context) error {
	if err := f.settleUnsettled(ctx); err != nil {
		return err
	}
	for f.state.Pair < len(pairs) {
		if err := f.comparePair(ctx); err != nil {
			return err
		}
		f.nextPair(ctx)
	}
	if err := f.everyShard(ctx, f.forbid); err != nil {
		return err
	}
	return f.everyShard(ctx, f.count)
}

// comparePair compares the two tables of the present pair.
func (f *full) comparePair(ctx context.Context) error {
	if err := f.digestAll(ctx, &f.state.Coarse); err != nil {
		return err
	}
	if f.narrow(); f.state.Fine.Cut.Parts > 0 {
		if err := f.digestAll(ctx, &f.state.Fine); err != nil {
			return err
		}
	}
	return f.descend(ctx)
}

func (f *full) digestAll(ctx context.Context, t *summary) error {
	return f.everyShard(ctx, func(ctx context.Context, shard int) error { return f.digest(ctx, t, shard) })
}

// narrow decides on a finer summary, unless that has been decided. Of the same sums it
// decides the same.
func (f *full) narrow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Fine.Cut.Parts > 0 {
		return
	}
	if fine, better := f.state.Coarse.finer(f.state.GroupRows, f.shards); better {
		f.state.Fine = fine
	}
}

// finest is the summary whose groups are read.
func (f *full) finest() *summary {
	if f.state.Fine.Cut.Parts > 0 {
		return &f.state.Fine
	}
	return &f.state.Coarse
}

// shardsAtOnce bounds the statements that run at once.
const shardsAtOnce = 16

func (f *full) everyShard(ctx context.Context, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for i := range f.shards {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// finish leaves word of the scan and removes the checkpoint: killed in between, it is
// gone on with, and ends again.
func (f *full) finish(ctx context.Context) (Report, error) {
	r := f.report()
	if err := SaveStatus(ctx, f.cfg.Store, r.status(time.Now())); err != nil {
		return r, err
	}
	if err := f.cfg.Store.DeleteCheckpoint(ctx, fullCheckpoint); err != nil {
		return r, fmt.Errorf("end the full scan: %w", err)
	}
	return r, nil
}

// paced is a store that is read at the scan's pace.
type paced struct {
	RepairStore
	pace throttle
}

func (p paced) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) (rows []storage.Result[storage.Edge]) {
	// What ends the pause early ends the next statement, too.
	_ = p.pace.do(ctx, func() error {
		rows = p.RepairStore.Edges(ctx, side, pairs)
		return nil
	})
	return rows
}
