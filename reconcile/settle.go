package reconcile

import (
	"cmp"
	"context"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// mostBatches bounds the batches of [Realtime], which cuts them by time, while edges cannot be settled: the last one then stays open.
const mostBatches = 100

// run reads all logs, and settles what has been read: several times in each window, if the logs have no end, or else at
// their end and whenever there is no more room. It returns an error of each log that was not read to its end; or the one for
// which settling was given up.
func (p *pairer) run(ctx context.Context) []error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, len(p.logs))
	var reading, settling sync.WaitGroup
	for k, l := range p.logs {
		reading.Go(func() { errs[k] = p.read(ctx, l) })
	}
	read := make(chan struct{})
	go func() { reading.Wait(); close(read) }()
	ticks := time.NewTicker(max(p.Window/4, 10*time.Millisecond))
	defer ticks.Stop()
	for isRead := false; !isRead; {
		due := p.mode == ModeRealtime
		select {
		case <-ticks.C:
		case <-p.full:
			due = true
		case <-read:
			isRead = true
		}
		if waiting := p.observe(); due && (waiting < mostBatches || p.mode == ModeIncremental) || isRead {
			b := p.cut()
			settling.Go(func() {
				if err := p.settle(ctx, b); err != nil {
					cancel(err) // the readers may wait for room
				}
			})
		}
	}
	settling.Wait()
	p.observe()
	if err := context.Cause(ctx); err != nil {
		return []error{err}
	}
	return errs
}

// observe measures the oldest edge that waits, and counts the batches that do.
func (p *pairer) observe() (batches int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	oldest := now
	wait := func(h *halves) {
		if h.since.Before(oldest) {
			oldest = h.since
		}
	}
	for _, h := range p.open {
		wait(h)
	}
	for _, b := range p.batches {
		for _, h := range b.edges {
			wait(h)
		}
	}
	p.Metrics.unpaired.WithLabelValues(string(p.mode)).Set(now.Sub(oldest).Seconds())
	return len(p.batches)
}

// settle settles a batch, and stores the positions that are done by that. [Realtime] tries edges again however often they fail, and
// leaves findings that are not to be repaired to others. For [Incremental] a batch of which anything is left is
// never done, so that no position behind it is stored.
//
// If an edge changes in every window, its newest change is after the rows that have been read from the logs, and is left to
// the next batch.
func (p *pairer) settle(ctx context.Context, b *batch) error {
	told := map[Key]bool{}
	for len(b.edges) > 0 {
		findings, _, again, failed := confirm(ctx, p.Store, b.edges, p.Window)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		left, err := p.dealWith(ctx, findings, told)
		err = cmp.Or(err, failed)
		if p.mode == ModeIncremental && (err != nil || len(left) > 0) {
			p.left(b, nil)
			return err
		}
		if p.Repair {
			again = append(again, storage.Filter(b.edges, func(h *halves) bool { return left[h.key] })...)
		}
		p.left(b, again)
		if len(again) > 0 {
			p.Logger.WarnContext(ctx, "reconcile: cannot check edges: retrying", "edges", len(again), "error", err)
			if err := sleep.For(ctx, p.Window); err != nil {
				return err
			}
		}
	}
	err := p.done(ctx, b)
	if err != nil && p.mode == ModeRealtime && ctx.Err() == nil {
		p.Logger.WarnContext(ctx, "reconcile: cannot save the checkpoint: retrying", "error", err)
		return nil
	}
	return err
}

// dealWith reports findings, each once, and repairs them if that is wanted. It returns which edges are left, and an error if
// some are left that should not be.
func (p *pairer) dealWith(ctx context.Context, findings []Finding, told map[Key]bool) (left map[Key]bool, err error) {
	if len(findings) == 0 {
		return nil, nil
	}
	p.dealing.Lock()
	defer p.dealing.Unlock()
	for _, f := range findings {
		if told[f.Key()] { // its last repair failed
			continue
		}
		told[f.Key()] = true
		p.report.Found[f.Kind]++
		defer p.Metrics.found.WithLabelValues(string(p.mode), string(f.Kind)).Inc() // after its repair: before, it is not left yet
		if p.Found != nil {
			p.Found(f)
		}
	}
	keys := storage.Each(findings, Finding.Key)
	if !p.Repair {
		return setOf(keys), nil
	}
	m, err := RepairEdges(ctx, p.Store, keys)
	rows := m.After
	left = setOf(m.Left)
	for _, f := range findings {
		if !left[f.Key()] {
			p.report.Repaired[f.Kind]++
			p.Metrics.repaired.WithLabelValues(string(p.mode), string(f.Kind)).Inc()
			rows = append(rows, storage.Row{Side: f.Side, Edge: f.Forward})
		}
	}
	if p.OnRepair != nil && len(rows) > 0 {
		p.OnRepair(ctx, rows)
	}
	return left, err
}
