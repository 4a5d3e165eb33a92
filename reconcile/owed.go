package reconcile

import (
	"context"
	"errors"

	"kith/storage"
)

// owedAtOnce is how many repairs are done together, and bounds what is owed: it is part
// of a state.
const owedAtOnce = 5000

// owe keeps which edges may change by repairs that are about to be done. Killed between
// a repair and what follows from it, a scan would not see the latter any more: by then
// the edge that was repaired agrees, and the one that is owed had been digested before.
func (f *full) owe(ctx context.Context, keys []Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Owed = keys
	if len(keys) == 0 {
		return
	}
	if err := f.save(ctx); err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "how far the scan is was not saved", "error", err)
	}
}

// settleOwed does what an earlier run has owed when it was killed.
func (f *full) settleOwed(ctx context.Context) error {
	if len(f.state.Owed) == 0 {
		return nil
	}
	m, err := Mend(ctx, f.store, f.state.Owed)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, storage.ErrUnavailable):
		return err // the scan needs that shard, too
	case err != nil:
		f.cfg.Logger.ErrorContext(ctx, "edges not repaired", "edges", len(m.Left), "error", err)
	}
	f.commit(ctx, func(s *state) { s.Owed = nil })
	return nil
}
