package replication

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"kith/storage"
)

// lane is the queue of one shard and the work on it.
type lane struct {
	shard int
	cfg   Config
	room  *semaphore.Weighted // rows that may wait
	wake  chan struct{}       // holds a token while rows may be waiting

	mu      sync.Mutex
	queue   []row
	failing *ShardFailure
}

// row is one edge on its way, with the batch that it came in.
type row struct {
	edge  storage.Edge
	entry *entry
}

func newLane(shard int, cfg Config) *lane {
	return &lane{
		shard: shard,
		cfg:   cfg,
		room:  semaphore.NewWeighted(int64(cfg.MaxPending)),
		wake:  make(chan struct{}, 1),
	}
}

// put appends edges to the queue, as room allows.
func (l *lane) put(ctx context.Context, e *entry, edges []storage.Edge) error {
	for len(edges) > 0 {
		n := min(len(edges), l.cfg.MaxPending)
		if err := l.room.Acquire(ctx, int64(n)); err != nil {
			return err
		}
		l.mu.Lock()
		for _, edge := range edges[:n] {
			l.queue = append(l.queue, row{edge, e})
		}
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
		edges = edges[n:]
	}
	return nil
}

// take removes the oldest rows of the queue, a batch at most.
func (l *lane) take() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), l.cfg.BatchRows)
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil // a backlog's memory is not kept
	}
	return batch
}

func (l *lane) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for batch := l.take(); len(batch) > 0; batch = l.take() {
			if !l.applyUntilDone(ctx, batch) {
				return
			}
		}
	}
}

// applyUntilDone applies a batch, over and over while the shard fails; false when
// the context ends first.
func (l *lane) applyUntilDone(ctx context.Context, batch []row) bool {
	const shortest, longest = 50 * time.Millisecond, 2 * time.Second
	for wait := shortest; ; wait = min(2*wait, longest) {
		err := l.apply(ctx, open(batch))
		if ctx.Err() != nil {
			return false
		}
		l.note(err)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
	l.acknowledge(batch)
	return true
}

// open leaves out the rows of sources that have been closed.
func open(batch []row) []row {
	closed := func(r row) bool { return r.entry.feed.closed.Load() }
	if !slices.ContainsFunc(batch, closed) {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), closed)
}

// apply writes a batch in one transaction and publishes it.
func (l *lane) apply(ctx context.Context, batch []row) error {
	edges, known := newest(batch)
	if len(edges) == 0 {
		return nil
	}
	results := l.cfg.Store.Apply(ctx, storage.Inverse, edges, storage.IfNewer)
	tell := make([]storage.Edge, 0, len(edges))
	for i, r := range results {
		switch {
		case r.Err != nil:
			return r.Err
		case r.Value.Changed, !known[i] && r.Value.Row == edges[i]:
			tell = append(tell, edges[i])
		}
	}
	if l.cfg.Publisher != nil && len(tell) > 0 {
		l.cfg.Publisher.Publish(ctx, tell)
	}
	return nil
}

// newest keeps the newest of the edges that name the same pair: applying them one
// after another ends there, too, and distinct pairs are written faster.
func newest(batch []row) (edges []storage.Edge, known []bool) {
	at := make(map[storage.Pair]int, len(batch))
	edges = make([]storage.Edge, 0, len(batch))
	known = make([]bool, 0, len(batch))
	for _, r := range batch {
		i, seen := at[r.edge.Pair()]
		switch {
		case !seen:
			at[r.edge.Pair()] = len(edges)
			edges = append(edges, r.edge)
			known = append(known, r.entry.known)
		case r.edge.UpdateTime > edges[i].UpdateTime:
			edges[i], known[i] = r.edge, r.entry.known
		}
	}
	return edges, known
}

// acknowledge lets go of a batch that has been applied.
func (l *lane) acknowledge(batch []row) {
	l.room.Release(int64(len(batch)))
	l.cfg.Metrics.applied(l.shard, batch)
	for start := 0; start < len(batch); {
		e, end := batch[start].entry, start+1
		for end < len(batch) && batch[end].entry == e {
			end++
		}
		e.feed.pending.Add(int64(start - end))
		e.finish(end - start)
		start = end
	}
}

// note keeps and logs the shard's failure, once when it begins and once when it
// has ended.
func (l *lane) note(err error) {
	l.mu.Lock()
	before := l.failing
	switch {
	case err == nil:
		l.failing = nil
	case before == nil:
		l.failing = &ShardFailure{Shard: l.shard, Since: time.Now(), Err: err}
	default:
		l.failing = &ShardFailure{Shard: l.shard, Since: before.Since, Err: err}
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		l.cfg.Metrics.failed(l.shard)
		if before == nil {
			l.cfg.Logger.Warn("replication: a shard takes no inverse rows; trying again until it does", "shard", l.shard, "error", err)
		}
	case before != nil:
		l.cfg.Logger.Info("replication: the shard takes inverse rows again", "shard", l.shard,
			"after", time.Since(before.Since).Round(time.Millisecond).String())
	}
}

func (l *lane) failure() *ShardFailure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}
