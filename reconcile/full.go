package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/storage"
	"kith/storage/shard"
)

// FullStore is what a full scan needs of a store.
type FullStore interface {
	MendStore
	storage.Comparer
	Checkpoints
}

// Checkpoints keep how far something has come, by name.
type Checkpoints interface {
	LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error)
	SaveCheckpoint(ctx context.Context, name string, value []byte) error
	DeleteCheckpoint(ctx context.Context, name string) error
}

// FullConfig says how a full scan is done.
type FullConfig struct {
	Store FullStore

	// Repair mends what is found. Defaults to a dry run.
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

	// SliceRows is how many rows of one side are held in memory to be compared one by
	// one, at about 100 bytes each. Defaults to 300,000. A scan that is gone on with
	// keeps what it began with.
	SliceRows int64

	// List is how many findings the report lists; all are counted, and mended.
	// Defaults to 10,000.
	List int

	// SaveEvery is how much work a kill may lose. Defaults to 2 s.
	SaveEvery time.Duration

	// OnProgress is told how far the scan is, from several goroutines, one at a time.
	// Defaults to nobody.
	OnProgress func(Progress)

	// Metrics counts. Defaults to nothing.
	Metrics *Metrics

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
	if c.SliceRows < 1 {
		c.SliceRows = 300_000
	}
	if c.List < 1 {
		c.List = 10_000
	}
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

// Full compares both sides of all edges, and all counts with their rows.
//
// First the databases add up digests, of every group of edges on both sides. Groups
// that differ are read and compared row by row. What then differs is read again
// after the window, and is a finding only if it has stayed as it was: so writers may
// write all the while. At last the counts are compared.
//
// How far it has come is kept in the store, partial sums included: a scan that ends
// early goes on from there, and skips nothing. Its report holds what was found
// before. When the context ends, so does the scan, with the context's error.
func Full(ctx context.Context, cfg FullConfig) (Report, error) {
	f := newFull(cfg)
	if err := f.begin(ctx); err != nil {
		return Report{}, err
	}
	err := f.run(ctx)
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

	shards  int
	shardOf [shard.Buckets]int // by bucket

	mu     sync.Mutex // guards what follows
	state  state
	saved  time.Time
	slices int // that there are, once the digests are in
	meter  meter
}

func newFull(cfg FullConfig) *full {
	cfg = cfg.withDefaults()
	f := &full{cfg: cfg, pace: throttle{cfg.MaxLoad}, shards: cfg.Store.Shards(), began: time.Now()}
	f.store = paced{cfg.Store, f.pace}
	place := shard.NewMap(f.shards)
	for i := range f.shards {
		first, last := place.Range(i)
		for b := first; b <= last; b++ {
			f.shardOf[b] = i
		}
	}
	return f
}

// begin finds out where to go on, and what there is to do.
func (f *full) begin(ctx context.Context) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	p, err := newPlan(ctx, f.cfg.Store, f.cfg.Owners)
	f.plan = p
	f.saved = time.Now()
	return err
}

func (f *full) run(ctx context.Context) error {
	if err := f.everyShard(ctx, f.digest); err != nil {
		return err
	}
	if err := f.descend(ctx); err != nil {
		return err
	}
	return f.everyShard(ctx, f.count)
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

// finish removes the checkpoint and leaves word of the scan.
func (f *full) finish(ctx context.Context) (Report, error) {
	r := f.report()
	f.cfg.Metrics.FullScan(r.Began)
	if err := saveLast(ctx, f.cfg.Store, r); err != nil {
		return r, err
	}
	if err := f.cfg.Store.DeleteCheckpoint(ctx, fullCheckpoint); err != nil {
		return r, fmt.Errorf("end the full scan: %w", err)
	}
	return r, nil
}

// paced is a store that is read at the scan's pace.
type paced struct {
	MendStore
	pace throttle
}

func (p paced) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) (rows []storage.Result[storage.Edge]) {
	// What ends the pause early ends the next statement, too.
	_ = p.pace.do(ctx, func() error {
		rows = p.MendStore.Edges(ctx, side, pairs)
		return nil
	})
	return rows
}
