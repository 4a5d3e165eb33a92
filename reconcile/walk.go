package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// A walk goes through the owners of some buckets on the shard that has them, in ascending order. The walks of
// one kind have all buckets, each once. If buckets move to another shard, another walk goes on with them there, from
// the owner that the first one has come to: so every owner is looked at once, on the shard that has it.
type walk struct {
	Shard   int // −1: no shard has the buckets at present
	Buckets []storage.BucketRange
	UpTo    storage.UserID // the last owner that has been looked at
}

// newWalks are the walks of a kind before any shard has been asked.
func newWalks() []walk {
	return []walk{{Shard: -1, Buckets: []storage.BucketRange{{First: 0, Last: storage.Buckets - 1}}}}
}

func (w *walk) isOver() bool { return w.UpTo == lastOwner || len(w.Buckets) == 0 }

// part cuts the buckets that a shard has off the walk's.
func (w *walk) part(served storage.Choice) (its []storage.BucketRange) {
	all := storage.ChooseBuckets(w.Buckets...)
	rest := all.Without(served)
	w.Buckets = rest.Ranges()
	return all.Without(rest).Ranges()
}

// errMoved means that a shard does not have all buckets of a walk any more.
var errMoved = errors.New("buckets have moved")

const (
	// handedOver is how long buckets may be without a shard that has them. A switch takes less than a second; if
	// the mover dies in it, a write that waits ends it after some seconds.
	handedOver = 30 * time.Second

	lookAgain = 100 * time.Millisecond
)

// everyWalk brings all walks of a kind to their ends. do continues one walk; it may return errMoved.
func (f *full) everyWalk(ctx context.Context, walks *[]walk, do func(context.Context, *walk) error) error {
	for {
		if err := f.route(ctx, walks); err != nil {
			return err
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(shardsAtOnce)
		over := true
		for i := range *walks {
			w := &(*walks)[i]
			if w.isOver() {
				continue
			}
			over = false
			g.Go(func() error {
				if err := do(ctx, w); !errors.Is(err, errMoved) {
					return err
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil || over {
			return err
		}
	}
}

// route assigns every walk that is not finished to the shard that has its buckets.
func (f *full) route(ctx context.Context, walks *[]walk) error {
	began := time.Now()
	for {
		lost, err := f.routeOnce(ctx, walks)
		switch {
		case err != nil:
			return err
		case lost < 0:
			return nil
		case time.Since(began) > handedOver: // between two steps of a move neither shard has them
			return fmt.Errorf("%w: no shard has bucket %d", storage.ErrUnavailable, lost)
		}
		if err := sleep.For(ctx, lookAgain); err != nil {
			return err
		}
	}
}

// routeOnce asks each shard once. lost is a bucket that no shard had, or −1.
func (f *full) routeOnce(ctx context.Context, walks *[]walk) (lost int, err error) {
	shards := f.cfg.Store.Shards()
	served := make([]storage.Served, shards)
	for i := range served {
		if served[i], err = f.served(ctx, i); err != nil {
			return 0, err
		}
	}
	if err := f.plan.grow(ctx, f.cfg.Store, shards, f.cfg.Owners); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var routed []walk
	lost = -1
	for _, w := range *walks {
		if w.isOver() {
			routed = append(routed, w)
			continue
		}
		if w.Shard >= 0 && w.Shard < shards { // it keeps what it has
			routed = append(routed, walk{w.Shard, w.part(served[w.Shard].Buckets), w.UpTo})
		}
		for i := range served {
			if its := w.part(served[i].Buckets); len(its) > 0 {
				routed = append(routed, walk{i, its, w.UpTo})
			}
		}
		if len(w.Buckets) > 0 {
			lost = w.Buckets[0].First
			routed = append(routed, walk{-1, w.Buckets, w.UpTo})
		}
	}
	*walks = slices.DeleteFunc(routed, func(w walk) bool { return len(w.Buckets) == 0 })
	return lost, nil
}

// served asks a shard which buckets it has, and asks again while the shard does not answer in time.
func (f *full) served(ctx context.Context, shard int) (served storage.Served, err error) {
	err = f.again(ctx, shard, func() (err error) {
		served, err = f.cfg.Store.Served(ctx, shard)
		return err
	})
	return served, err
}

// holds returns errMoved unless a shard has all buckets of a walk.
func (f *full) holds(ctx context.Context, w *walk) (served storage.Served, err error) {
	if served, err = f.served(ctx, w.Shard); err != nil {
		return served, err
	}
	rest := walk{Buckets: w.Buckets}
	if rest.part(served.Buckets); len(rest.Buckets) > 0 {
		err = errMoved
	}
	return served, err
}

// only is the choice of a walk's buckets, nil if its shard has no other rows.
func (w *walk) only(served storage.Served) storage.Choice {
	all := newWalks()[0]
	if whole := all.part(served.Buckets); !served.Others && slices.Equal(w.Buckets, whole) {
		return nil
	}
	return storage.ChooseBuckets(w.Buckets...)
}

// goOn reads each range of a walk's owners, in order, until the shard does not have all its buckets any more:
// errMoved. After each range it calls took with the last owner read; took sets the walk's UpTo when it has dealt with
// the range. A range is read again if the shard's epoch has risen meanwhile. If the shard does not answer in time,
// goOn retries with fewer rows of a side, down to those of one owner.
func (f *full) goOn(ctx context.Context, side storage.Side, w *walk, read func(sides.OwnerRange) error, took func(upTo storage.UserID) error) error {
	served, err := f.holds(ctx, w)
	rows := 0 // of a range at most; 0: as planned
	for after := w.UpTo; err == nil && after < lastOwner; {
		planned := f.plan[w.Shard][f.plan.done(w.Shard, after)]
		r := sides.OwnerRange{After: after, UpTo: planned, Buckets: w.only(served)}
		if err := f.readRange(ctx, side, w.Shard, &r, &rows, read); err != nil {
			return err
		}
		if r.UpTo == planned {
			rows = 0
		}
		before := served.Epoch
		if served, err = f.holds(ctx, w); err != nil || served.Epoch != before {
			continue
		}
		err, after = took(r.UpTo), r.UpTo
	}
	return err
}

// readRange reads a range, or the beginning of it that a shard can read in time.
func (f *full) readRange(ctx context.Context, side storage.Side, shard int, r *sides.OwnerRange, rows *int, read func(sides.OwnerRange) error) error {
	return f.again(ctx, shard, func() error {
		err := f.shorten(ctx, side, shard, r, *rows)
		if err == nil {
			err = read(*r)
		}
		if err != nil {
			*rows = cmp.Or(*rows/4, f.cfg.Rows)
		}
		return err
	})
}

// shorten ends a range before the owner who has its rows-th row. If there is no owner before, that owner is the range: a store
// reads one owner in parts.
func (f *full) shorten(ctx context.Context, side storage.Side, shard int, r *sides.OwnerRange, rows int) error {
	if rows == 0 {
		return nil
	}
	owner, ok, err := f.cfg.Store.OwnerOfRow(ctx, side, shard, r.After, rows)
	if ok && owner <= r.UpTo {
		r.UpTo = max(owner-1, r.After+1)
	}
	return err
}

// A plan cuts the owners of each shard into ranges: it holds the last owners of each shard's
// ranges, in ascending order. The last range is open, because edges may have owners who are not
// users.
type plan [][]storage.UserID

// lastOwner ends the last range of every shard.
const lastOwner storage.UserID = math.MaxInt64

// grow plans the shards that have no plan yet.
func (p *plan) grow(ctx context.Context, store sides.Comparer, shards, owners int) error {
	for shard := len(*p); shard < shards; shard++ {
		ranges, err := planOf(ctx, store, shard, owners)
		if err != nil {
			return fmt.Errorf("look for the owners of shard %d: %w", shard, err)
		}
		*p = append(*p, ranges)
	}
	return nil
}

func planOf(ctx context.Context, store sides.Comparer, shard, owners int) (ranges []storage.UserID, err error) {
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
