package reconcile

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// countsAtOnce is how many suspected counts are read again together.
const countsAtOnce = 1000

// count compares the counts of one shard's users with their rows, on both sides.
func (f *full) count(ctx context.Context, shard int) error {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var suspects []storage.WrongCount
		read := func(r storage.OwnerRange) error {
			wrong, err := f.cfg.Store.WrongCounts(ctx, side, shard, r)
			if err == nil {
				suspects = append(suspects, wrong...)
			}
			return err
		}
		took := func(upTo storage.UserID) error {
			if 0 < len(suspects) && len(suspects) < countsAtOnce && upTo < lastOwner {
				return nil // one wait for many
			}
			c, err := f.confirmCounts(ctx, side, shard, suspects)
			if err != nil {
				return err
			}
			n := len(suspects)
			suspects = nil
			f.commit(ctx, func(s *state) {
				s.take(c, f.cfg.List)
				s.Report.Bytes += int64(n) * countBytes
				s.Counted[side][shard] = upTo
			})
			return nil
		}
		if err := f.walk(ctx, shard, f.state.Counted[side][shard], read, took); err != nil {
			return err
		}
	}
	return nil
}

// confirmCounts reads suspected counts again, and again after the window, and keeps
// those that are wrong by the same number at two readings.
//
// A count that will be right once the edges are is no finding: who has lost a row and
// still counts it has one disagreement, which is that row's.
func (f *full) confirmCounts(ctx context.Context, side storage.Side, shard int, suspects []storage.WrongCount) (confirmed, error) {
	var c confirmed
	var settled []storage.WrongCount
	for round := 1; len(suspects) > 0 && round < confirmRounds; round++ {
		if err := sleep(ctx, f.cfg.Window); err != nil {
			return c, err
		}
		before := make(map[storage.UserID]int64, len(suspects))
		for _, w := range suspects {
			before[w.User] = w.Have - w.Are
		}
		now, err := f.wrongCounts(ctx, side, shard, suspects)
		if err != nil {
			return c, err
		}
		suspects = nil
		for _, w := range now {
			if w.Have-w.Are == before[w.User] {
				settled = append(settled, w)
			} else {
				suspects = append(suspects, w)
			}
		}
	}
	c.unsettled = len(suspects)
	for _, w := range settled {
		if side == storage.Forward || w.Have-w.Are != f.state.Explained[w.User] {
			c.found = append(c.found, Finding{Kind: WrongCount, Side: side, User: w.User, Have: w.Have, Are: w.Are})
		}
	}
	return c, f.recount(ctx, side, shard, settled, &c)
}

// wrongCounts reads counts again.
func (f *full) wrongCounts(ctx context.Context, side storage.Side, shard int, suspects []storage.WrongCount) ([]storage.WrongCount, error) {
	var wrong []storage.WrongCount
	for _, w := range suspects {
		err := f.again(ctx, shard, func() error {
			now, err := f.cfg.Store.WrongCounts(ctx, side, shard, storage.OwnerRange{After: w.User - 1, UpTo: w.User})
			if err == nil {
				wrong = append(wrong, now...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

// recount mends counts, unless the scan is a dry run, also those that are wrong
// because of edges.
func (f *full) recount(ctx context.Context, side storage.Side, shard int, wrong []storage.WrongCount, c *confirmed) error {
	if !f.cfg.Repair || len(wrong) == 0 {
		return nil
	}
	for chunk := range slices.Chunk(wrong, 100) {
		users := make([]storage.UserID, len(chunk))
		for i, w := range chunk {
			users[i] = w.User
		}
		err := f.again(ctx, shard, func() error {
			for i, r := range f.cfg.Store.Recount(ctx, side, users) {
				if r.Err != nil {
					return fmt.Errorf("recount %s of user %d: %w", side, users[i], r.Err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	still, err := f.wrongCounts(ctx, side, shard, wrong)
	if err != nil {
		return err
	}
	c.repaired = map[Kind]int{WrongCount: len(c.found)}
	for _, w := range still {
		if slices.ContainsFunc(c.found, func(d Finding) bool { return d.User == w.User }) {
			c.repaired[WrongCount]--
		}
	}
	return nil
}
