package replication

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
)

// A Batch is what a source has read in one piece, such as a transaction.
type Batch struct {
	// Rows are rows of forward tables, in the order in which they were written.
	Rows []storage.Row

	// Committed is when they were, as far as the source knows: lag is counted from
	// here. 0 stands for the first row's UpdateTime.
	Committed storage.Micros

	// Known rows are published only where they are new to the inverse side: for the
	// copy of what has been there for long. Others are published also when another
	// writer was faster, or when this source delivers them again after a crash: it
	// may have come between writing and publishing.
	Known bool

	// Done, when set, is called once the batch, what followed from it, and all batches
	// before it have been applied, one call after the other in the order of Submit. It must be quick and
	// must not use the Feed.
	Done func()
}

// A Feed is one source's way into the [Applier]. Batches that are submitted at the
// same time are in no order.
type Feed struct {
	applier *Applier
	source  string
	pending atomic.Int64 // rows
	closed  atomic.Bool

	mu      sync.Mutex
	entries []*entry  // submitted and not all applied, oldest first
	silent  time.Time // when the source was last heard of; zero while it is heard
}

// entry is a batch under way.
type entry struct {
	feed  *Feed
	left  atomic.Int64 // rows not applied yet
	at    time.Time
	known bool
	done  func()
}

// Submit hands a batch over. It returns before the batch is applied, and blocks
// while too many rows wait for one of its shards. Its only error is the context's:
// then a part of the batch may be applied, and its Done is not called.
func (f *Feed) Submit(ctx context.Context, b Batch) error {
	e := &entry{feed: f, at: committed(b), known: b.Known, done: b.Done}
	e.left.Store(int64(len(b.Rows)) + 1) // one more until all are handed over
	f.mu.Lock()
	f.entries = append(f.entries, e)
	f.mu.Unlock()
	f.pending.Add(int64(len(b.Rows)))

	for i, share := range f.applier.split(b.Rows) {
		if err := f.applier.lanes[i].put(ctx, e, share); err != nil {
			return err
		}
	}
	e.finish(1)
	return nil
}

func committed(b Batch) time.Time {
	now := time.Now()
	at := now
	switch {
	case b.Committed > 0:
		at = b.Committed.Time()
	case len(b.Rows) > 0:
		at = b.Rows[0].Edge.UpdateTime.Time()
	}
	if at.After(now) { // clocks differ
		return now
	}
	return at
}

// more counts rows that have to be applied, too: they followed from one of the entry,
// which must not be finished yet.
func (e *entry) more(rows int) {
	e.left.Add(int64(rows))
	e.feed.pending.Add(int64(rows))
}

// finish counts rows as applied and acknowledges what is complete, in order.
func (e *entry) finish(rows int) {
	if e.left.Add(-int64(rows)) > 0 {
		return
	}
	f := e.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.entries) > 0 && f.entries[0].left.Load() == 0 {
		first := f.entries[0]
		f.entries[0] = nil
		f.entries = f.entries[1:]
		if first.done != nil && !f.closed.Load() {
			first.done()
		}
	}
}

// Apply submits rows and waits until they have been applied, after everything that
// was submitted before. A shard that fails is tried again until the context ends,
// whose error is the only one; then any of the rows may be applied, or be later.
func (f *Feed) Apply(ctx context.Context, rows []storage.Row) error {
	applied := make(chan struct{})
	if err := f.Submit(ctx, Batch{Rows: rows, Done: func() { close(applied) }}); err != nil {
		return err
	}
	select {
	case <-applied:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Flush waits until everything submitted so far has been applied.
func (f *Feed) Flush(ctx context.Context) error { return f.Apply(ctx, nil) }

// Silent notes that the source has not been heard of since then, so that its lag
// grows although nothing arrives. The zero time means that it is heard again.
func (f *Feed) Silent(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = since
}

// Lag is how long ago the oldest row that is not applied yet was committed, or how
// long the source has been silent; 0 when there is nothing to do.
func (f *Feed) Lag() time.Duration { return f.lag(time.Now()) }

func (f *Feed) lag(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lag time.Duration
	if len(f.entries) > 0 {
		lag = now.Sub(f.entries[0].at)
	}
	if !f.silent.IsZero() {
		lag = max(lag, now.Sub(f.silent))
	}
	return max(lag, 0)
}

// Pending is how many rows wait or are being applied.
func (f *Feed) Pending() int { return int(f.pending.Load()) }

// Close gives up what is pending: it is neither applied, except for what is under
// way, nor acknowledged.
func (f *Feed) Close() {
	f.mu.Lock() // waits for a Done under way
	f.closed.Store(true)
	f.entries = nil
	f.mu.Unlock()
	f.applier.forget(f)
}
