package replication

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
)

// A Batch is what a source reads as a unit, such as a transaction.
type Batch struct {
	// Rows are rows of forward tables, in the order in which they were written.
	Rows []storage.Row

	// Committed is when they were committed, as far as the source knows: lag is counted from then.
	// 0 means the first row's UpdateTime.
	Committed storage.Micros

	// Known means that rows are published only if they are new to the inverse side: it is for copying
	// rows that have existed for long. Other rows are published even if another writer was faster, or
	// if this source delivers them again after a crash, because the crash may have come between writing
	// and publishing.
	Known bool

	// Done, if set, is called once the batch, what followed from it, and all batches before it have
	// been applied. Calls come one at a time, in the order of Submit. Done must be quick and must
	// not use the Feed.
	Done func()
}

// A Feed passes the batches of one source to the [Applier]. Batches submitted at the same time have
// no order.
type Feed struct {
	applier *Applier
	source  string
	pending atomic.Int64 // rows
	closed  atomic.Bool

	mu          sync.Mutex
	submissions []*submission // submitted and not all applied, oldest first
	silent      time.Time     // when the source was last heard; zero while it is heard
}

// submission is a batch under way.
type submission struct {
	feed  *Feed
	left  atomic.Int64 // rows not applied yet
	at    time.Time
	known bool
	done  func()
}

// Submit passes a batch to the lanes. It returns before the batch is applied, and blocks while too
// many rows wait for one of its shards. It returns an error only if the context ends: then a part
// of the batch may be applied, and Done is not called any more, neither for this batch nor for later
// ones. So the context must not end before the work on the source does, and the feed is closed then.
func (f *Feed) Submit(ctx context.Context, b Batch) error {
	e := &submission{feed: f, at: committed(b), known: b.Known, done: b.Done}
	e.left.Store(int64(len(b.Rows)) + 1) // plus one until all rows are queued
	f.mu.Lock()
	f.submissions = append(f.submissions, e)
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

// more adds rows to a submission that have to be applied, too, because they followed from one of its
// rows. It must not be finished yet.
func (e *submission) more(rows int) {
	e.left.Add(int64(rows))
	e.feed.pending.Add(int64(rows))
}

// finish counts rows as applied and acknowledges complete submissions in order.
func (e *submission) finish(rows int) {
	if e.left.Add(-int64(rows)) > 0 {
		return
	}
	f := e.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.submissions) > 0 && f.submissions[0].left.Load() == 0 {
		first := f.submissions[0]
		f.submissions[0] = nil
		f.submissions = f.submissions[1:]
		if first.done != nil && !f.closed.Load() {
			first.done()
		}
	}
}

// Flush waits until everything submitted so far has been applied. A failing shard is retried until the context ends, and Flush
// returns an error only then.
func (f *Feed) Flush(ctx context.Context) error {
	applied := make(chan struct{})
	_ = f.Submit(ctx, Batch{Done: func() { close(applied) }}) // it fails only when the context ends
	select {
	case <-applied:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Silent notes that the source has not been heard since a time, so that its lag grows although
// nothing arrives. The zero time means that it is heard again.
func (f *Feed) Silent(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = since
}

// lag is how long ago the oldest row not yet applied was committed, or how long the source has been
// silent; 0 if there is nothing to do.
func (f *Feed) lag(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lag time.Duration
	if len(f.submissions) > 0 {
		lag = now.Sub(f.submissions[0].at)
	}
	if !f.silent.IsZero() {
		lag = max(lag, now.Sub(f.silent))
	}
	return max(lag, 0)
}

// Close drops what is pending: it is not acknowledged, nor applied, except for what is being
// applied now.
func (f *Feed) Close() {
	f.mu.Lock() // waits for a Done under way
	f.closed.Store(true)
	f.submissions = nil
	f.mu.Unlock()
	f.applier.forget(f)
}
