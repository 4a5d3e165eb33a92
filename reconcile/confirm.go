package reconcile

import (
	"context"
	"errors"
	"time"

	"kith/storage"
)

// confirmRounds is how often what keeps changing is read before it is left.
const confirmRounds = 5

// Confirm reads suspected edges twice or more often, a window apart, and returns
// those that disagree: whose inverse row was the same at two readings, and not what
// the forward row was at either. A row on its way would have arrived in between.
// Also returned is how many changed at every reading, of which nothing is known.
func Confirm(ctx context.Context, store Edges, pairs []storage.Pair, window time.Duration) (found []Finding, unsettled int, err error) {
	suspects, err := differencesAgain(ctx, store, pairs)
	for round := 1; err == nil && len(suspects) > 0 && round < confirmRounds; round++ {
		if err := sleep(ctx, window); err != nil {
			return nil, 0, err
		}
		var now []Finding
		if now, err = differencesAgain(ctx, store, pairsOf(suspects)); err != nil {
			break
		}
		before := make(map[storage.Edge]bool, len(suspects))
		for _, s := range suspects {
			before[s.Inverse] = true
		}
		suspects = nil
		for _, s := range now {
			if before[s.Inverse] {
				found = append(found, s)
			} else {
				suspects = append(suspects, s)
			}
		}
	}
	return found, len(suspects), err
}

// differencesAgain is [Differences], tried again while a shard does not answer in
// time.
func differencesAgain(ctx context.Context, store Edges, pairs []storage.Pair) ([]Finding, error) {
	const tries = 6
	for try := 1; ; try++ {
		found, err := Differences(ctx, store, pairs)
		if err == nil || ctx.Err() != nil || !errors.Is(err, storage.ErrUnavailable) || try == tries {
			return found, err
		}
		if err := sleep(ctx, 50*time.Millisecond<<try); err != nil {
			return nil, err
		}
	}
}

// confirmed is what a part of a scan has found, and what became of it.
type confirmed struct {
	found     []Finding
	unsettled int
	repaired  map[Kind]int
}

func (f *full) confirm(ctx context.Context, suspects []storage.Pair) (confirmed, error) {
	found, unsettled, err := Confirm(ctx, f.store, suspects, f.cfg.Window)
	return confirmed{found: found, unsettled: unsettled}, err
}

// mend repairs what was found of edges, unless the scan is a dry run. What cannot be
// repaired is left, and told; only the context's end is an error.
func (f *full) mend(ctx context.Context, c *confirmed) error {
	if !f.cfg.Repair || len(c.found) == 0 {
		return nil
	}
	_, left, err := Mend(ctx, f.store, pairsOf(c.found))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.cfg.Logger.ErrorContext(ctx, "edges not repaired", "edges", len(left), "error", err)
	}
	still := make(map[storage.Pair]bool, len(left))
	for _, p := range left {
		still[p] = true
	}
	c.repaired = make(map[Kind]int)
	for _, d := range c.found {
		if !still[d.Pair()] {
			c.repaired[d.Kind]++
		}
	}
	return nil
}
