package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"kith/internal/sleep"
	"kith/storage"
)

// confirmRounds is how often what keeps changing is read before it is left.
const confirmRounds = 5

// Confirm reads suspected edges twice or more often, a window apart, and returns
// those that disagree: whose inverse row was the same at two readings, and not what
// the forward row was at either. A row on its way would have arrived in between.
// Also returned is how many changed at every reading, of which nothing is known.
func Confirm(ctx context.Context, store Edges, keys []Key, window time.Duration) (found []Finding, unsettled int, err error) {
	suspects, err := differencesAgain(ctx, store, keys)
	for round := 1; err == nil && len(suspects) > 0 && round < confirmRounds; round++ {
		if err := sleep.For(ctx, window); err != nil {
			return nil, 0, err
		}
		var now []Finding
		if now, err = differencesAgain(ctx, store, keysOf(suspects)); err != nil {
			break
		}
		before := make(map[storage.Row]bool, len(suspects)) // inverse rows
		for _, s := range suspects {
			before[storage.Row{Side: s.Side, Edge: s.Inverse}] = true
		}
		suspects = nil
		for _, s := range now {
			if before[storage.Row{Side: s.Side, Edge: s.Inverse}] {
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
func differencesAgain(ctx context.Context, store Edges, keys []Key) (found []Finding, err error) {
	err = whileAway(ctx, func() error {
		found, err = Differences(ctx, store, keys)
		return err
	})
	return found, err
}

// whileAway reads again while a shard does not answer in time.
func whileAway(ctx context.Context, read func() error) error {
	const tries = 6
	for try := 1; ; try++ {
		err := read()
		if err == nil || ctx.Err() != nil || !errors.Is(err, storage.ErrUnavailable) || try == tries {
			return err
		}
		if err := sleep.For(ctx, 50*time.Millisecond<<try); err != nil {
			return err
		}
	}
}

// confirmed is what a part of a scan has found, and what became of it.
type confirmed struct {
	found     []Finding
	unsettled int
	off       map[storage.UserID]countsOff // by what was found
	repaired  map[Kind]int
}

func (f *full) confirm(ctx context.Context, suspects []Key) (c confirmed, err error) {
	if c.found, c.unsettled, err = Confirm(ctx, f.store, suspects, f.cfg.Window); err != nil {
		return c, err
	}
	c.off, err = f.countsOff(ctx, c.found)
	return c, err
}

// mend repairs what was found of edges, unless the scan is a dry run. What cannot be
// repaired is left, and told; only the context's end is an error.
func (f *full) mend(ctx context.Context, c *confirmed) error {
	if !f.cfg.Repair || len(c.found) == 0 {
		return nil
	}
	left := make(map[Key]bool)
	for chunk := range slices.Chunk(c.found, owedAtOnce) {
		f.owe(ctx, mayFollow(chunk))
		m, err := Mend(ctx, f.store, keysOf(chunk))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.cfg.Logger.ErrorContext(ctx, "edges not repaired", "edges", len(m.Left), "error", err)
		}
		for _, k := range m.Left {
			left[k] = true
		}
	}
	c.repaired = make(map[Kind]int)
	for _, d := range c.found {
		if !left[d.Key()] {
			c.repaired[d.Kind]++
		}
	}
	return nil
}
