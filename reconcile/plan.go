package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/internal/sleep"
	"kith/storage"
)

// A plan cuts the owners of each shard into ranges: it holds the last owners of each shard's
// ranges, in ascending order. The last range is open, because edges may have owners who are not
// users.
type plan [][]storage.UserID

// lastOwner ends the last range of every shard.
const lastOwner storage.UserID = math.MaxInt64

func newPlan(ctx context.Context, store storage.Comparer, owners int) (plan, error) {
	p := make(plan, store.Shards())
	for shard := range p {
		var after storage.UserID
		for {
			id, ok, err := store.NextOwner(ctx, shard, after, owners)
			if err != nil {
				return nil, fmt.Errorf("look for the owners of shard %d: %w", shard, err)
			}
			if !ok {
				break
			}
			p[shard] = append(p[shard], id)
			after = id
		}
		p[shard] = append(p[shard], lastOwner)
	}
	return p, nil
}

// done is how many ranges of a shard end at or before an owner.
func (p plan) done(shard int, owner storage.UserID) int {
	n, found := slices.BinarySearch(p[shard], owner)
	if found {
		n++
	}
	return n
}

// walk reads each range of a shard's owners after one owner, in order. After each range it calls
// took with the last owner read. If the shard does not answer in time, walk retries with fewer
// owners.
func (f *full) walk(ctx context.Context, shard int, after storage.UserID, read func(storage.OwnerRange) error, took func(upTo storage.UserID) error) error {
	for after < lastOwner {
		r := storage.OwnerRange{After: after, UpTo: f.plan[shard][f.plan.done(shard, after)]}
		owners := f.cfg.Owners
		err := f.again(ctx, shard, func() error {
			err := read(r)
			if err == nil || ctx.Err() != nil {
				return err
			}
			owners = max(1, owners/4)
			if id, ok, failed := f.cfg.Store.NextOwner(ctx, shard, r.After, owners); failed == nil && ok && id < r.UpTo {
				r.UpTo = id
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := took(r.UpTo); err != nil {
			return err
		}
		after = r.UpTo
	}
	return nil
}

// again runs a statement at the scan's pace, and retries while the shard does not answer in time.
func (f *full) again(ctx context.Context, shard int, statement func() error) error {
	const tries = 6
	for try := 1; ; try++ {
		err := f.pace.Do(ctx, statement)
		if err == nil || ctx.Err() != nil || !errors.Is(err, storage.ErrUnavailable) || try == tries {
			return err
		}
		f.cfg.Logger.WarnContext(ctx, "the scan asks a shard again", "shard", shard, "error", err)
		if err := sleep.For(ctx, 50*time.Millisecond<<try); err != nil {
			return err
		}
	}
}
