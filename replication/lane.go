package replication

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"kith/storage"
	"kith/storage/sleep"
)

// lane is the queue of one shard and the work on it.
type lane struct {
	shard   int
	cfg     Config
	applier *Applier
	room    *semaphore.Weighted // rows that may wait
	wake    sleep.Waker         // holds a token while rows may be waiting

	mu      sync.Mutex
	queue   []row
	failing *ShardFailure
}

// row is one row on its way, with the batch in which it came. A row that followed from another
// takes no room.
type row struct {
	storage.Row
	of   *submission
	from chain
}

func newLane(shard int, a *Applier) *lane {
	return &lane{
		shard:   shard,
		cfg:     a.cfg,
		applier: a,
		room:    semaphore.NewWeighted(int64(a.cfg.MaxPending)),
		wake:    make(sleep.Waker, 1),
	}
}

// put appends rows to the queue as room becomes free.
func (l *lane) put(ctx context.Context, e *submission, rows []storage.Row) error {
	for some := range slices.Chunk(rows, l.cfg.MaxPending) {
		if err := l.room.Acquire(ctx, int64(len(some))); err != nil {
			return err
		}
		l.push(e, nil, some...)
	}
	return nil
}

// push appends rows to the queue.
func (l *lane) push(e *submission, from chain, rows ...storage.Row) {
	l.mu.Lock()
	for _, r := range rows {
		l.queue = append(l.queue, row{r, e, from})
	}
	l.mu.Unlock()
	l.wake.Wake()
}

// atOnce is how many transactions a lane that is behind has under way: one waits for the disk or the
// network, or keeps this program busy, while the server works on the other.
const atOnce = 2

// take removes the oldest rows of the queue: a batch at most or, if there is more than enough for all
// transactions at once, one for each of them.
func (l *lane) take() (batch []row, parts [][]row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), l.cfg.BatchRows)
	if len(l.queue) >= atOnce*l.cfg.BatchRows {
		n, parts = l.divide()
	}
	batch = l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil // so that a backlog's memory is released
	}
	if parts == nil {
		parts = [][]row{batch}
	}
	return batch, parts
}

// divide divides the oldest rows of the queue by the owners of their inverse rows, until one part is a
// batch. So rows of one pair keep their order, and no part waits for the locks of another.
func (l *lane) divide() (n int, parts [][]row) {
	parts = make([][]row, atOnce)
	for i := range parts {
		parts[i] = make([]row, 0, l.cfg.BatchRows)
	}
	for _, r := range l.queue {
		part := &parts[spread(r.Side.Replica().Owner(r.Edge.Pair()))]
		if len(*part) == l.cfg.BatchRows {
			break
		}
		*part = append(*part, r)
		n++
	}
	return n, parts
}

// spread is the part of an owner. Ids may all have the same low bits.
func spread(owner storage.UserID) int {
	return int(uint64(owner) * 0x9E3779B97F4A7C15 >> 32 % atOnce)
}

func (l *lane) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for batch, parts := l.take(); len(batch) > 0; batch, parts = l.take() {
			if !l.applyUntilDone(ctx, parts) {
				return
			}
			l.acknowledge(batch)
		}
	}
}

// applyUntilDone applies parts at once, table by table; it returns false if the context ends first.
func (l *lane) applyUntilDone(ctx context.Context, parts [][]row) bool {
	for _, side := range storage.Truths {
		var applying sync.WaitGroup
		for _, part := range parts {
			applying.Go(func() { l.applyPart(ctx, side, part) })
		}
		applying.Wait()
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// applyPart applies those rows of a part that are of one table, and tries again those that the shard does not take, until the context
// ends. It drops the rows of closed sources.
func (l *lane) applyPart(ctx context.Context, side storage.Side, part []row) {
	const shortest, longest = 50 * time.Millisecond, 2 * time.Second
	closed := func(r row) bool { return r.of.feed.closed.Load() }
	rows := slices.DeleteFunc(slices.Clone(part), func(r row) bool { return r.Side.Truth() != side || closed(r) })
	for wait := shortest; len(rows) > 0; wait = min(2*wait, longest) {
		failed, err := l.apply(ctx, side, rows)
		if ctx.Err() != nil {
			return
		}
		if l.note(err); err == nil || sleep.For(ctx, wait/2+rand.N(wait/2)) != nil {
			return
		}
		if rows = slices.DeleteFunc(failed, closed); len(rows) == 0 {
			l.note(nil)
		}
	}
}

// apply writes rows of one table in one transaction, passes on the rows that follow from them, and
// publishes. It returns the rows that were not written: while a bucket moves, its rows fail alone.
func (l *lane) apply(ctx context.Context, side storage.Side, rows []row) (failed []row, err error) {
	edges := storage.Each(rows, func(r row) storage.Edge { return r.Edge })
	done := make([]storage.Row, 0, len(rows))
	for i, r := range l.cfg.Store.Apply(ctx, side.Replica(), edges, storage.IfNewer) {
		if r.Err != nil {
			failed, err = append(failed, rows[i]), r.Err
			continue
		}
		if r.Value.Changed || !rows[i].of.known && r.Value.Row == edges[i] {
			done = append(done, rows[i].Row)
		}
		if len(r.Value.Also) > 0 {
			done = append(done, l.followed(rows[i], r.Value.Also)...)
		}
	}
	if l.cfg.Publisher != nil && len(done) > 0 {
		l.cfg.Publisher.Publish(ctx, done)
	}
	return failed, err
}

// followed queues the rows that followed from a row in their own lanes, as a part of the row's batch,
// which is acknowledged only after them. It returns the rows that are on both sides already.
func (l *lane) followed(r row, also []storage.Written) (there []storage.Row) {
	from := r.from.with(r.Row)
	missing, there := from.next(also, l.cfg.Logger)
	r.of.more(len(missing))
	for _, next := range missing {
		l.applier.lanes[l.applier.lane(next)].push(r.of, from, next)
	}
	return there
}

// acknowledge finishes the rows of a batch that has been applied.
func (l *lane) acknowledge(batch []row) {
	l.cfg.Metrics.applied(l.shard, batch)
	for _, r := range batch {
		if r.from == nil {
			l.room.Release(1)
		}
		r.of.feed.pending.Add(-1)
		r.of.finish(1)
	}
}

// note records the shard's failure, and logs its beginning and its end, each once.
func (l *lane) note(err error) {
	l.mu.Lock()
	before := l.failing
	if l.failing = nil; err != nil {
		l.failing = &ShardFailure{Shard: l.shard, Since: time.Now(), Err: err}
		if before != nil {
			l.failing.Since = before.Since
		}
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		l.cfg.Metrics.failed(l.shard)
		if before == nil {
			l.cfg.Logger.Warn("replication: cannot write to a shard: retrying", "shard", l.shard, "error", err)
		}
	case before != nil:
		l.cfg.Logger.Info("replication: writes to the shard succeed again", "shard", l.shard,
			"after", time.Since(before.Since).Round(time.Millisecond).String())
	}
}

func (l *lane) failure() *ShardFailure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}
