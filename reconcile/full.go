package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kith/graph/defaults"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// FullStore is what a full scan needs of a store.
type FullStore interface {
	RepairStore
	sides.Comparer
	storage.Checkpoints
	SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (changed bool, err error)
	ShardOf(user storage.UserID) int
}

// FullConfig says how a full scan is done.
type FullConfig struct {
	Store FullStore

	// Repair repairs what is found. Defaults to a dry run.
	Repair bool

	// Restart begins again even if an earlier scan could be continued.
	Restart bool

	// Window is how long the inverse side may lag: differences are read again after it. Defaults to
	// 3 s.
	Window time.Duration

	// MaxLoad is the share of time in which statements may run on each shard, above 0
	// and at most 1. Defaults to 0.5.
	MaxLoad float64

	// MaxEnded is which share of a shard's forward rows may be missing for a repair to end their other sides: more are missing
	// because the shard has lost them. Of a shard, a thousand may always be missing, but no more than a tenth. Defaults to 1,
	// which is no bound.
	MaxEnded float64

	// Owners is how many users one statement looks at. Defaults to 20,000.
	Owners int

	// Rows is how many rows one statement looks at if those of Owners users take longer than a statement may. A shard that
	// does not answer in time either is asked for fewer. Defaults to 4,000,000.
	Rows int

	// GroupRows is how many rows a differing group should have at most when it is read. Larger
	// groups are first cut into smaller ones, which takes another pass of digests over the classes
	// that differ. Defaults to 200.
	GroupRows int64

	// SliceRows is how many rows of one side are held in memory to be compared one by one, at about
	// 100 bytes each. Defaults to 300,000. A continued scan keeps its original value.
	SliceRows int64

	// List is how many findings the report lists; all are counted, and repaired.
	// Defaults to 10,000; 50,000 at most.
	List int

	// SaveEvery is how much work is lost if the scan is killed. Defaults to 2 s.
	SaveEvery time.Duration

	// OnProgress is called with the scan's progress, from several goroutines, one at a time.
	// Defaults to none.
	OnProgress func(Progress)

	// Logger logs retries. Defaults to slog.Default().
	Logger *slog.Logger
}

// DefaultWindow is how long an inverse side may lag.
const DefaultWindow = 3 * time.Second

func (c FullConfig) withDefaults() FullConfig {
	c = defaults.For(c, FullConfig{
		Window: DefaultWindow, MaxLoad: 0.5, MaxEnded: 1, Owners: 20_000, Rows: 4_000_000, GroupRows: 200, SliceRows: 300_000, List: 10_000, SaveEvery: 2 * time.Second,
		OnProgress: func(Progress) {}, Logger: slog.Default(),
	})
	c.List = min(c.List, mostListed)
	return c
}

// ErrNotRecorded: the scan has come to its end, and the store has not taken that down, because it is read-only for instance.
var ErrNotRecorded = errors.New("the end of the scan is not recorded")

// Full compares both sides of all edges, in all pairs of tables, and all counts with their rows.
// It also looks for follows that a block forbids, and for users with the ids of deleted ones.
//
// First the databases compute digests of every group of edges on both sides and then, for the
// groups that differ, of smaller groups. Groups that still differ are read and compared row by
// row. Rows that differ are read again after the window, and are findings only if they have not
// changed: so writers may continue to write. Last, the counts are compared. One pair of tables
// comes after the other.
//
// Its progress is kept in the store, including partial sums: a scan that ends early continues from
// there, and skips nothing. Buckets may move from shard to shard meanwhile: each owner is looked at on the shard
// that has it (see [walk]). Its report includes what was found before, and so does the [Status]
// that it saves at its end: [ErrNotRecorded], beside the report, if it cannot. When the context ends, so does the scan, with the context's error.
func Full(ctx context.Context, cfg FullConfig) (Report, error) {
	cfg = cfg.withDefaults()
	f := &full{cfg: cfg, pace: sleep.Throttle{Load: cfg.MaxLoad}, began: time.Now()}
	f.store = paced{cfg.Store, f.pace}
	if err := f.begin(ctx); err != nil {
		return Report{}, err
	}
	err := f.run(ctx)
	if err == nil {
		err = ctx.Err() // the end can no longer be recorded
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
	pace  sleep.Throttle
	store paced
	plan  plan
	began time.Time // of this run

	ending sync.Mutex // held while a walk's forbidden follows are ended

	mu     sync.Mutex // guards what follows
	state  state
	saved  time.Time
	slices int   // how many there are, once the digests are in
	behind int64 // work done on the pairs before, see [full.progress]
}

// begin finds out where to continue, and what there is to do.
func (f *full) begin(ctx context.Context) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	err := f.plan.grow(ctx, f.cfg.Store, f.cfg.Store.Shards(), f.cfg.Owners)
	f.behind = int64(f.state.Pair) * 2 * f.ranges()
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
	if err := f.everyWalk(ctx, &f.state.Follows, f.forbid); err != nil {
		return err
	}
	for which := range counts {
		err := f.everyWalk(ctx, &f.state.Counted[which], func(ctx context.Context, w *walk) error { return f.count(ctx, which, w) })
		if err != nil {
			return err
		}
	}
	return nil
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
	for half := range t.Digested {
		err := f.everyWalk(ctx, &t.Digested[half], func(ctx context.Context, w *walk) error { return f.digest(ctx, t, half, w) })
		if err != nil {
			return err
		}
	}
	return nil
}

// narrow decides whether to make a finer summary, unless that is decided already. The same sums
// always give the same decision.
func (f *full) narrow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Fine.Cut.Parts > 0 {
		return
	}
	if fine, better := f.state.Coarse.finer(f.state.GroupRows); better {
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

// finish saves the scan's status and removes the checkpoint. If the scan is killed in between, the
// next run continues it and finishes again.
func (f *full) finish(ctx context.Context) (Report, error) {
	r := f.report()
	err := SaveStatus(ctx, f.cfg.Store, r.status(time.Now()))
	if err == nil {
		err = f.cfg.Store.DeleteCheckpoint(ctx, fullCheckpoint)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotRecorded, err)
	}
	return r, err
}

// paced is a store that is read at the scan's pace.
type paced struct {
	RepairStore
	pace sleep.Throttle
}

func (p paced) Bundle(ctx context.Context, b *storage.Bundle) {
	// If the pause is ended early, the same cause ends the next statement, too.
	_ = p.pace.Do(ctx, func() error {
		p.RepairStore.Bundle(ctx, b)
		return nil
	})
}
