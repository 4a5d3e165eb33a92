package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sides"
)

// A block ends the follow in the other direction in one transaction, on the shard of the blocked
// user, where both rows are. So the two never exist together, unless a database was changed or
// restored by hand.

// forbid looks for follows that a block forbids, and for users with the ids of deleted ones or of things, on one walk.
func (f *full) forbid(ctx context.Context, w *walk) error {
	var suspects []storage.Pair
	read := func(r sides.OwnerRange) (err error) {
		suspects, err = f.cfg.Store.ForbiddenFollows(ctx, w.Shard, r)
		return err
	}
	took := func(upTo storage.UserID) error {
		c, err := f.confirmForbidden(ctx, suspects)
		if err != nil {
			return err
		}
		if len(c.found) > 0 { // only one walk at a time may have unsettled edges
			f.ending.Lock()
			defer f.ending.Unlock()
		}
		if err := f.repair(ctx, &c); err != nil {
			return err
		}
		n := int64(len(suspects))
		f.commit(ctx, func(s *state) {
			s.take(c, f.cfg.List)
			s.Report.Bytes += n * 5 * rowBytes
			w.UpTo = upTo
			if len(c.found) > 0 {
				s.Unsettled = nil
			}
		})
		return nil
	}
	return f.goOn(ctx, storage.Inverse, w, read, took)
}

// confirmForbidden keeps those suspects that are the same at two readings, a window apart.
func (f *full) confirmForbidden(ctx context.Context, suspects []storage.Pair) (c confirmed, err error) {
	found, err := f.forbidden(ctx, suspects)
	if err != nil {
		return c, err
	}
	found, changing, err := twice(ctx, f.cfg.Window, found, func(d Finding) Finding { return d }, func(list []Finding) ([]Finding, error) {
		return f.forbidden(ctx, storage.Each(list, Finding.Pair))
	})
	c.found, c.unsettled = found, len(changing)
	return c, err
}

// forbidden reads follows and the blocks in the other direction. If following contradicts a block,
// the block forbids nothing: it is a finding itself.
func (f *full) forbidden(ctx context.Context, follows []storage.Pair) (found []Finding, err error) {
	for _, p := range follows {
		if p.From == p.To {
			found = append(found, Finding{Kind: Forbidden, User: p.From, Forward: storage.Edge{From: p.From, To: p.To}})
		}
	}
	for chunk := range slices.Chunk(follows, readAtOnce) {
		there := KeysOf(storage.Forward, chunk)
		back := storage.Each(chunk, func(p storage.Pair) Key { return Key{storage.Forward, reversed(p)} })
		err := whileAway(ctx, func() error {
			var now []Finding
			rows := readRows(ctx, f.store, there, storage.Side.Truth)
			for i, block := range readBoth(ctx, f.store, back) {
				switch {
				case block.Err != nil:
					return block.Err
				case rows[i].Err != nil:
					return rows[i].Err
				case block.Value.forward == block.Value.inverse && block.Value.inverse.Type == storage.Blocking && (rows[i].Value.Type == storage.Following || rows[i].Value.Type == storage.Requested):
					now = append(now, Finding{Kind: Forbidden, Forward: rows[i].Value, Inverse: block.Value.inverse})
				}
			}
			found = append(found, now...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// endForbidden ends follows as the block should have, if the block still exists, and begins to delete users: a gateway goes on
// with that, see [kith/accounts.Sweeper]. It returns the edges whose ends have to be
// propagated to the other side, and those that are left.
func (f *full) endForbidden(ctx context.Context, found []Finding) (ended, left []Key, err error) {
	var repairs []sides.Repair
	for _, d := range found {
		if d.User > storage.MaxUserID { // to delete it would end the edges of the thing
			left = append(left, d.Key())
			continue
		}
		if d.User != 0 {
			if _, failed := f.cfg.Store.SetState(ctx, d.User, storage.Deleting, storage.MicrosOf(time.Now())); failed != nil {
				left, err = append(left, d.Key()), fmt.Errorf("delete user %d: %w", d.User, failed)
			}
			continue
		}
		repairs = append(repairs, sides.Repair{Side: storage.Forward, Pair: d.Inverse.Pair(), Observed: d.Inverse, Want: d.Inverse})
		ended = append(ended, Key{storage.Forward, d.Pair()}, Key{storage.Requests, d.Pair()})
	}
	f.noteUnsettled(ctx, ended)
	for i, r := range f.cfg.Store.RepairInverse(ctx, repairs) {
		if r.Err != nil {
			p := reversed(repairs[i].Pair)
			left, err = append(left, Key{storage.Forward, p}), fmt.Errorf("end the follow from %d to %d: %w", p.From, p.To, r.Err)
		}
	}
	return ended, left, err
}
