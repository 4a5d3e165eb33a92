package replication

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/storage"
)

// A Publisher publishes what has been applied, for caches and subscriptions.
type Publisher interface {
	// Publish is called with forward rows whose inverse rows and counts have been written, as they
	// are now. It may be called for the same row again. It must not block for long: the shard's
	// next batch waits for it.
	Publish(ctx context.Context, rows []storage.Row)
}

// Config says where rows go and how.
type Config struct {
	// Store is what the inverse rows are written to.
	Store storage.EdgeWriter

	// Shards is how many shards the store has. Defaults to 1.
	Shards int

	// ShardOf is the shard that has a user's rows at present. Defaults to the assignment of a store that
	// was laid out for that number of shards.
	ShardOf func(storage.UserID) int

	// Publisher publishes what has been applied. Defaults to none.
	Publisher Publisher

	// BatchRows is how many rows one transaction takes at most. Defaults to 900, what one statement locks:
	// single rows are applied at a tenth of the speed, larger batches are no faster. If twice as many wait
	// for a shard, they are applied in two transactions at once, divided by the owners of the inverse rows.
	BatchRows int

	// MaxPending is how many rows may wait for one shard before [Feed.Submit] blocks: what a dead
	// shard may hold back before the other shards wait for it too, at about 80 bytes a row. Rows that
	// follow from applied rows come on top of it: lanes that waited for room in one another would wait
	// without end. Defaults to 200,000.
	MaxPending int

	// Metrics counts. Defaults to none.
	Metrics *Metrics

	// Logger logs shards that fail and recover. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Shards = max(c.Shards, 1)
	if c.ShardOf == nil {
		c.ShardOf = storage.NewShardMap(c.Shards).Of
	}
	c.BatchRows = cmp.Or(max(c.BatchRows, 0), 900)
	c.MaxPending = cmp.Or(max(c.MaxPending, 0), 200_000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Metrics = cmp.Or(c.Metrics, NewMetrics(nil))
	return c
}

// An Applier writes forward rows to the inverse tables of their pairs, with one lane for each
// shard. A lane applies in one transaction what has arrived during the one before: a lone row is
// applied at once, a backlog in full batches, two at a time.
//
// Nothing is dropped: a lane retries a failing shard until it succeeds, while the others go on.
type Applier struct {
	cfg   Config
	lanes []*lane

	mu    sync.Mutex
	feeds []*Feed
}

// New makes an applier. It applies nothing before [Applier.Run].
func New(cfg Config) *Applier {
	a := &Applier{cfg: cfg.withDefaults()}
	for i := range a.cfg.Shards {
		a.lanes = append(a.lanes, newLane(i, a))
	}
	a.cfg.Metrics.watch(a)
	return a
}

// Run applies what the feeds submit until the context ends. Rows pending then stay unacknowledged.
func (a *Applier) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, l := range a.lanes {
		wg.Go(func() { l.run(ctx) })
	}
	wg.Wait()
}

// Discard takes the applier out of the metrics. It has ended, and another applier takes its place.
func (a *Applier) Discard() {
	a.cfg.Metrics.forget(a)
}

// Feed opens a feed for one source, which must close it. Metrics and [Status] name the source by
// the given name.
func (a *Applier) Feed(source string) *Feed {
	f := &Feed{applier: a, source: source}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.feeds = append(a.feeds, f)
	return f
}

func (a *Applier) forget(f *Feed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.feeds = slices.DeleteFunc(a.feeds, func(g *Feed) bool { return g == f })
}

// lane is the lane in which a row is applied: that of the shard that owns its inverse row. A shard
// that has been added since shares another's.
func (a *Applier) lane(row storage.Row) int {
	return a.cfg.ShardOf(row.Side.Replica().Owner(row.Edge.Pair())) % len(a.lanes)
}

// split sorts rows by lane and keeps their order.
func (a *Applier) split(rows []storage.Row) [][]storage.Row {
	shares := make([][]storage.Row, len(a.lanes))
	if len(a.lanes) == 1 {
		shares[0] = rows
		return shares
	}
	for _, r := range rows {
		i := a.lane(r)
		shares[i] = append(shares[i], r)
	}
	return shares
}

// Status is the state of replication.
type Status struct {
	Lag      time.Duration // the greatest lag of the sources; 0 if everything is applied
	Pending  int           // rows waiting or being applied
	Sources  []SourceStatus
	Failures []ShardFailure // shards whose last write failed
}

// SourceStatus is the state of one source.
type SourceStatus struct {
	Source  string
	Lag     time.Duration
	Pending int
}

// ShardFailure is why a shard is behind.
type ShardFailure struct {
	Shard int
	Since time.Time
	Err   error
}

// Status reports how far behind the inverse side is, and why.
func (a *Applier) Status() Status {
	a.mu.Lock()
	feeds := slices.Clone(a.feeds)
	a.mu.Unlock()
	var s Status
	now := time.Now()
	for _, f := range feeds {
		one := SourceStatus{Source: f.source, Lag: f.lag(now), Pending: int(f.pending.Load())}
		s.Sources = append(s.Sources, one)
		s.Lag = max(s.Lag, one.Lag)
		s.Pending += one.Pending
	}
	slices.SortFunc(s.Sources, func(a, b SourceStatus) int { return strings.Compare(a.Source, b.Source) })
	for _, l := range a.lanes {
		if f := l.failure(); f != nil {
			s.Failures = append(s.Failures, *f)
		}
	}
	return s
}

// Err is nil while every shard accepts its rows.
func (s Status) Err() error {
	if len(s.Failures) == 0 {
		return nil
	}
	f := s.Failures[0]
	return fmt.Errorf("shard %d takes no inverse rows since %s: %w", f.Shard, f.Since.UTC().Format(time.RFC3339), f.Err)
}
