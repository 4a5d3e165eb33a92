package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// MendStore is what mending needs of a store.
type MendStore interface {
	Edges
	storage.Repairer
}

// mendRounds is how often an edge's rows are read and written before it is left.
const mendRounds = 10

// errUnsettled says that an edge was changed whenever it was to be mended.
var errUnsettled = errors.New("the rows kept changing")

// Mend makes the inverse row of each pair what its forward row is, and returns how
// many rows were written and which pairs it has left, with the reason of the first
// of them. Counts follow the rows.
//
// A row is written only if it is still as it was observed, and then both are read
// again until they agree. So an event that comes in between is not undone; and one
// that found a row of a false, newer time in its place, and was not applied, is not
// lost: its forward row is there to be seen.
func Mend(ctx context.Context, store MendStore, pairs []storage.Pair) (mended int, left []storage.Pair, err error) {
	for chunk := range slices.Chunk(pairs, readAtOnce) {
		n, rest, failed := mendChunk(ctx, store, chunk)
		mended += n
		left = append(left, rest...)
		if err == nil {
			err = failed
		}
	}
	return mended, left, err
}

func mendChunk(ctx context.Context, store MendStore, pairs []storage.Pair) (int, []storage.Pair, error) {
	written := make(map[storage.Pair]bool)
	pending := pairs
	var err error
	for round := range mendRounds {
		if round > 1 { // the second reading only sees whether all is well
			if waited := sleep(ctx, time.Duration(round)*10*time.Millisecond); waited != nil {
				return len(written), pending, waited
			}
		}
		var found []Finding
		if found, err = Differences(ctx, store, pending); err != nil {
			continue
		}
		if pending = pairsOf(found); len(pending) == 0 {
			return len(written), nil, nil
		}
		err = repair(ctx, store, found, written)
	}
	if err == nil {
		err = fmt.Errorf("mend %d edges: %w", len(pending), errUnsettled)
	}
	// A row that was written, and differs again, is not mended.
	for _, p := range pending {
		delete(written, p)
	}
	return len(written), pending, err
}

// repair tries to write each inverse row once and notes those it has written.
func repair(ctx context.Context, store MendStore, found []Finding, written map[storage.Pair]bool) error {
	repairs := make([]storage.Repair, len(found))
	for i, f := range found {
		repairs[i] = storage.Repair{Pair: f.Pair(), Observed: f.Inverse, Want: f.Forward}
	}
	var err error
	for i, r := range store.RepairInverse(ctx, repairs) {
		switch {
		case r.Err != nil:
			err = fmt.Errorf("repair follower from %d to %d: %w", repairs[i].Pair.From, repairs[i].Pair.To, r.Err)
		case r.Value:
			written[repairs[i].Pair] = true
		}
	}
	return err
}

func pairsOf(found []Finding) []storage.Pair {
	pairs := make([]storage.Pair, len(found))
	for i, f := range found {
		pairs[i] = f.Pair()
	}
	return pairs
}

// sleep waits, or returns the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
