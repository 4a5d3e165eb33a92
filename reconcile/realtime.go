package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/storage/sleep"
)

// Realtime does what [Incremental] does, for ever: it looks at what changes now. Several times in each window it looks up the edges whose
// halves have not been the same until then, and repairs those that still differ a window later: one and a half windows after the
// write at most, if all shards answer.
//
// Its checkpoints move only past edges that are settled, so after a restart it continues where it
// ended. While a shard does not answer, its edges wait in memory, up to MaxPending; then reading waits, too.
type Realtime struct{ *pairer }

// NewRealtime makes a Realtime. It does nothing before [Realtime.Run].
func NewRealtime(cfg ChangesConfig) *Realtime {
	return &Realtime{newPairer(cfg.withDefaults(), ModeRealtime)}
}

// mostBatches bounds the batches while edges cannot be settled: the last one then stays open.
const mostBatches = 100

// Run watches until the context ends, and then returns nil. It returns an error if it cannot begin.
// It may be called once.
func (r *Realtime) Run(ctx context.Context) error {
	if _, err := r.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it is ended, and whatever failed did so by that
		}
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, l := range r.logs {
		running.Go(func() { _ = r.read(ctx, l) }) // it ends with the context
	}
	ticks := time.NewTicker(max(r.Window/4, 10*time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-r.full:
		case <-ctx.Done():
			return nil
		}
		if r.observe() < mostBatches {
			b := r.cut()
			running.Go(func() { r.settle(ctx, b) })
		}
	}
}

// observe measures the oldest edge that waits, and counts the batches that do.
func (r *Realtime) observe() (batches int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	oldest := now
	for _, h := range r.open {
		oldest = earlier(oldest, h.since)
	}
	for _, b := range r.batches {
		for _, h := range b.edges {
			oldest = earlier(oldest, h.since)
		}
	}
	r.Metrics.OldestUnpaired(r.mode, now.Sub(oldest))
	return len(r.batches)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// settle settles a batch, however often edges have to be tried again, and stores the positions that are done by that. Findings that are not to
// be repaired are left to others.
func (r *Realtime) settle(ctx context.Context, b *batch) {
	told := map[Key]bool{}
	for len(b.edges) > 0 {
		findings, _, again, failed := confirm(ctx, r.Store, b.edges, func(int) error { return sleep.For(ctx, r.Window) })
		if ctx.Err() != nil {
			return
		}
		left, err := r.dealWith(ctx, findings, told)
		if err != nil {
			failed = err
		}
		for _, h := range b.edges {
			if r.Repair && slices.Contains(left, h.key) {
				again = append(again, h)
			}
		}
		r.left(b, again)
		if len(again) > 0 {
			r.Logger.WarnContext(ctx, "reconcile: edges cannot be dealt with; trying again", "edges", len(again), "error", failed)
			if sleep.For(ctx, r.Window) != nil {
				return
			}
		}
	}
	if err := r.done(ctx, b); err != nil && ctx.Err() == nil {
		r.Logger.WarnContext(ctx, "reconcile: the checkpoint cannot be saved; trying again", "error", err)
	}
}

// dealWith reports findings, each once, and repairs them.
func (r *Realtime) dealWith(ctx context.Context, findings []Finding, told map[Key]bool) (left []Key, err error) {
	if len(findings) == 0 {
		return nil, nil
	}
	r.dealing.Lock()
	defer r.dealing.Unlock()
	for _, f := range findings {
		if !told[f.Key()] { // otherwise its last repair failed
			told[f.Key()] = true
			r.reportFindings(f)
		}
	}
	_, left, err = r.repair(ctx, findings)
	return left, err
}
