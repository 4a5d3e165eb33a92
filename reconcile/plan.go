package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kith/storage"
)

// A plan cuts the owners of each shard into ranges: it holds the last owners of each shard's
// ranges, in ascending order. The last range is open, because edges may have owners who are not
// users.
type plan [][]storage.UserID

// lastOwner ends the last range of every shard.
const lastOwner storage.UserID = math.MaxInt64

// grow plans the shards that have no plan yet.
func (p *plan) grow(ctx context.Context, store storage.Comparer, shards, owners int) error {
	for shard := len(*p); shard < shards; shard++ {
		ranges, err := planOf(ctx, store, shard, owners)
		if err != nil {
			return fmt.Errorf("look for the owners of shard %d: %w", shard, err)
		}
		*p = append(*p, ranges)
	}
	return nil
}

func planOf(ctx context.Context, store storage.Comparer, shard, owners int) (ranges []storage.UserID, err error) {
	var after storage.UserID
	for {
		id, ok, err := store.NextOwner(ctx, shard, after, owners)
		if err != nil {
			return nil, err
		}
		if !ok {
			return append(ranges, lastOwner), nil
		}
		ranges = append(ranges, id)
		after = id
	}
}

// done is how many ranges of a shard end at or before an owner.
func (p plan) done(shard int, owner storage.UserID) int {
	n, found := slices.BinarySearch(p[shard], owner)
	if found {
		n++
	}
	return n
}

// again runs a statement at the scan's pace, and retries while the shard does not answer in time.
func (f *full) again(ctx context.Context, shard int, statement func() error) error {
	return whileAway(ctx, func() error {
		err := f.pace.Do(ctx, statement)
		if errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil {
			f.cfg.Logger.WarnContext(ctx, "reconcile: a shard does not answer: retrying", "shard", shard, "error", err)
		}
		return err
	})
}
