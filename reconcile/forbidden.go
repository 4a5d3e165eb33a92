package reconcile

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sleep"
)

// A block ends the follow in the other direction in one transaction, on the shard of the blocked
// user, where both rows are. So the two never exist together, unless a database was changed or
// restored by hand.

// forbid looks for follows that a block forbids, on one walk.
func (f *full) forbid(ctx context.Context, w *walk) error {
	var suspects []storage.Pair
	read := func(r storage.OwnerRange) (err error) {
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
		if err := f.endForbidden(ctx, &c); err != nil {
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
	return f.goOn(ctx, w, read, took)
}

// confirmForbidden reads suspects twice, a window apart, and keeps those that are the same at both
// readings.
func (f *full) confirmForbidden(ctx context.Context, suspects []storage.Pair) (c confirmed, err error) {
	if len(suspects) == 0 {
		return c, nil
	}
	before, err := f.forbidden(ctx, suspects)
	if err != nil || len(before) == 0 {
		return c, err
	}
	if err := sleep.For(ctx, f.cfg.Window); err != nil {
		return c, err
	}
	now, err := f.forbidden(ctx, suspects)
	for _, d := range now {
		if slices.Contains(before, d) {
			c.found = append(c.found, d)
		}
	}
	return c, err
}

// forbidden reads follows and the blocks in the other direction. If following contradicts a block,
// the block forbids nothing: it is a finding itself.
func (f *full) forbidden(ctx context.Context, follows []storage.Pair) (found []Finding, err error) {
	for chunk := range slices.Chunk(follows, readAtOnce) {
		there := KeysOf(storage.Forward, chunk)
		back := make([]Key, len(chunk))
		for i, p := range chunk {
			back[i] = Key{storage.Forward, reversed(p)}
		}
		err := whileAway(ctx, func() error {
			var now []Finding
			rows := readRows(ctx, f.store, there, storage.Side.Truth)
			for i, block := range readBoth(ctx, f.store, back) {
				switch {
				case block.Err != nil:
					return block.Err
				case rows[i].Err != nil:
					return rows[i].Err
				case block.Value.forward == block.Value.inverse && block.Value.inverse.Type == storage.Blocking && rows[i].Value.Type == storage.Following:
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

// endForbidden ends follows as the block should have, if the block still exists, and propagates their
// ends to the other side. In a dry run it does nothing.
func (f *full) endForbidden(ctx context.Context, c *confirmed) error {
	if !f.cfg.Repair || len(c.found) == 0 {
		return nil
	}
	c.repaired = make(map[Kind]int)
	for chunk := range slices.Chunk(c.found, readAtOnce) {
		ended, err := f.endChunk(ctx, chunk)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.cfg.Logger.ErrorContext(ctx, "forbidden follows not ended", "follows", len(chunk)-ended, "error", err)
		}
		c.repaired[Forbidden] += ended
	}
	return nil
}

func (f *full) endChunk(ctx context.Context, found []Finding) (ended int, err error) {
	repairs := make([]storage.Repair, len(found))
	var keys []Key
	for i, d := range found {
		repairs[i] = storage.Repair{Side: storage.Forward, Pair: d.Inverse.Pair(), Observed: d.Inverse, Want: d.Inverse}
		keys = append(keys, KeysOf(storage.Forward, []storage.Pair{d.Pair()})...)
		keys = append(keys, KeysOf(storage.Requests, []storage.Pair{d.Pair()})...)
	}
	f.noteUnsettled(ctx, keys)
	left := make(map[Key]bool)
	for i, r := range f.cfg.Store.RepairInverse(ctx, repairs) {
		if r.Err != nil {
			left[found[i].Key()] = true
			err = fmt.Errorf("end the follow from %d to %d: %w", found[i].Forward.From, found[i].Forward.To, r.Err)
		}
	}
	m, failed := RepairEdges(ctx, f.store, keys)
	if err == nil {
		err = failed
	}
	for _, k := range m.Left {
		left[k] = true
	}
	for _, d := range found {
		if !left[d.Key()] {
			ended++
		}
	}
	return ended, err
}
