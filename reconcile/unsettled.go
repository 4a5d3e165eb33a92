package reconcile

import (
	"context"
	"errors"

	"kith/storage"
)

// unsettledAtOnce is how many repairs are done together. It also bounds what is unsettled, which is
// part of a state.
const unsettledAtOnce = 5000

// noteUnsettled stores which edges may change because of the repairs about to be done. If a scan is
// killed between a repair and the propagation of what follows from it, the continued scan would not
// find the edges that differ: by then the repaired edge agrees, and the unsettled edge had been
// digested before.
func (f *full) noteUnsettled(ctx context.Context, keys []Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Unsettled = keys
	if len(keys) == 0 {
		return
	}
	if err := f.save(ctx); err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "reconcile: cannot save the progress of the scan", "error", err)
	}
}

// settleUnsettled settles what an earlier run had left unsettled when it was killed.
func (f *full) settleUnsettled(ctx context.Context) error {
	if len(f.state.Unsettled) == 0 {
		return nil
	}
	m, err := RepairEdges(ctx, f.store, f.state.Unsettled)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, storage.ErrUnavailable):
		return err // the scan needs that shard, too
	case err != nil:
		f.cfg.Logger.ErrorContext(ctx, "reconcile: cannot repair edges", "edges", len(m.Left), "error", err)
	}
	f.commit(ctx, func(s *state) { s.Unsettled = nil })
	return nil
}
