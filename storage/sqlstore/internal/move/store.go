package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A whole store is copied to another one as its buckets would be to another shard: rows that are
// written meanwhile are noted, copied again and compared. At the end the old store no longer takes
// writes, and is read until all programs use the new one.

// A copier is the movers of the shards that are still to be copied, each with its ordinal.
type copier struct {
	from, to *db.DB
	cfg      Config
	movers   []*Mover
}

// CopyStore copies a store to an empty one, or continues to do so. A shard whose copy has been decided
// stays as it is; [db.ErrCopied] if that is true of all shards. The report's Waited is how long the old
// store took no writes before the copy was whole.
func CopyStore(ctx context.Context, from, to *db.DB, cfg Config) (report Report, err error) {
	began, closed := time.Now(), time.Now()
	c := copier{from: from, to: to, cfg: cfg.withDefaults()}
	var one sync.Mutex
	c.cfg.OnProgress = func(p Progress) { one.Lock(); defer one.Unlock(); cfg.withDefaults().OnProgress(p) }
	all, err := c.leave(ctx)
	if err == nil {
		err = c.each(Copying, func(m *Mover) error { return m.copy(ctx) })
	}
	if err == nil {
		err = c.each(Comparing, func(m *Mover) error { return m.compare(ctx) })
	}
	for tries, again := 0, true; again && err == nil; tries++ {
		if tries == switches {
			err = fmt.Errorf("%w: the last rows took longer than writes may wait, %d times", errBehind, tries)
		} else if err = c.each(Switching, func(m *Mover) error { return m.catchUp(ctx) }); err == nil {
			closed = time.Now()
			again, err = c.trySwitch(ctx)
		}
	}
	for _, m := range all {
		report.Rows, report.Again = report.Rows+m.report.Rows, report.Again+m.report.Again
		report.Compared, report.Repaired = report.Compared+m.report.Compared, report.Repaired+m.report.Repaired
	}
	report.Waited, report.Took = time.Since(closed), time.Since(began)
	return report, err
}

// leave has rows noted that are written to the shards, except shards whose copy has been decided.
func (c *copier) leave(ctx context.Context) (movers []*Mover, err error) {
	if err := c.from.Refresh(ctx); err != nil {
		return nil, err
	}
	claims := c.from.Claims()
	for i, list := range claims {
		for _, claim := range list {
			if claim.State != db.Owned && claim.Other != db.OtherStore {
				return nil, fmt.Errorf("%w: buckets %d–%d of shard %d are being moved: end that first (kith shards resume)", storage.ErrLayout, claim.First, claim.Last, i)
			}
		}
	}
	for i, list := range claims {
		if !slices.ContainsFunc(list, func(claim db.Claim) bool { return claim.State != db.Left }) {
			continue
		}
		m := newMover(c.from, Plan{Buckets: list[0].BucketRange, From: i, To: db.OtherStore}, c.cfg)
		m.of = nil // all, in several ranges perhaps
		m.to, m.target = c.to, func(bucket int) int { shard, _ := c.to.Map.Now().Owner(bucket); return shard }
		m.wanted = func(bucket int) bool { shard, _ := c.from.Map.Now().Owner(bucket); return shard == i }
		m.guard = func(*db.Tx) error { return nil } // nobody uses it
		m.cfg.Step(fmt.Sprint("leave ", i))
		if err := m.leave(ctx); err != nil {
			return nil, err
		}
		movers = append(movers, m)
	}
	if c.movers = movers; len(movers) == 0 {
		return nil, db.ErrCopied
	}
	return movers, nil
}

// each lets the movers do something in turn.
func (c *copier) each(phase Phase, f func(*Mover) error) error {
	for _, m := range c.movers {
		m.enter(phase)
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// atOnce lets the movers do a step at the same time, while writes wait.
func (c *copier) atOnce(name string, f func(*Mover) error) error {
	return db.EveryShard(len(c.movers), func(i int) error {
		c.movers[i].cfg.Step(fmt.Sprint(name, " ", c.movers[i].plan.From))
		return f(c.movers[i])
	})
}

// trySwitch closes the shards, copies what is noted, and decides for one after the other. If that takes
// too long, or if a waiting writer has reopened a shard, the shards that are not decided take writes
// again, and the switch has to be tried again.
func (c *copier) trySwitch(ctx context.Context) (again bool, err error) {
	late := errors.New("it takes too long")
	limited, cancel := context.WithTimeoutCause(ctx, 2*closedFor, late)
	defer cancel()
	err = c.atOnce("close", func(m *Mover) error { return m.change(limited, db.Closed, db.Leaving) })
	if err == nil {
		err = c.atOnce("last rows", func(m *Mover) error { _, err := m.copyNoted(limited, true); return err })
	}
	if err == nil {
		c.cfg.Step("secrets")
		err = copySecrets(limited, c.from, c.to)
	}
	for err == nil && len(c.movers) > 0 {
		c.cfg.Step(fmt.Sprint("decide ", c.movers[0].plan.From))
		if err = c.movers[0].change(ctx, db.Left, db.Closed); err == nil {
			c.movers = c.movers[1:]
		}
	}
	if err == nil || ctx.Err() != nil {
		return false, err
	}
	back := c.atOnce("open", func(m *Mover) error { return m.change(ctx, db.Leaving, db.Leaving, db.Closed) })
	if errors.Is(context.Cause(limited), late) || errors.Is(err, errStep) {
		return back == nil, back
	}
	return false, errors.Join(err, back)
}

// leave has rows noted that are written to the shard from now on.
func (m *Mover) leave(ctx context.Context) error {
	return step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) {
		for i, c := range old {
			if c.State == db.Left || c.State != db.Owned && c.Other != db.OtherStore {
				return nil, fmt.Errorf("%w: buckets %d–%d of shard %d have just gone", storage.ErrUnavailable, c.First, c.Last, m.plan.From)
			}
			old[i].State, old[i].Other, old[i].Token, old[i].Since = db.Leaving, db.OtherStore, m.cfg.Token, now()
		}
		return old, nil
	})
}

// change changes the state of all claims of the shard. errStep, if they are in none of the states.
func (m *Mover) change(ctx context.Context, to db.ClaimState, from ...db.ClaimState) error {
	return step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) {
		for i, c := range old {
			if c.Token != m.cfg.Token {
				return nil, fmt.Errorf("%w: the copy has been taken over or back by another process", storage.ErrUnavailable)
			}
			if !slices.Contains(from, c.State) {
				return nil, errStep
			}
			old[i].State, old[i].Since = to, now()
		}
		return old, nil
	})
}

// AbortCopy lets a store that has been copied, or is being copied, be written to again.
func AbortCopy(ctx context.Context, d *db.DB) error {
	var errs []error
	for i := range d.All() {
		errs = append(errs, step(ctx, d, i, func(old []db.Claim) ([]db.Claim, error) {
			for i, c := range old {
				if c.Other == db.OtherStore {
					old[i].State, old[i].Other, old[i].Token, old[i].Since = db.Owned, -1, "", now()
				}
			}
			return old, nil
		}))
	}
	return errors.Join(errs...)
}

// IsCopied reports whether a store is being copied to another one, or has been.
func IsCopied(claims [][]db.Claim) bool {
	return slices.ContainsFunc(claims, func(list []db.Claim) bool {
		return slices.ContainsFunc(list, func(c db.Claim) bool { return c.Other == db.OtherStore })
	})
}

// secrets is the table from which keys are derived.
var secrets = table{db.Table{Name: "kith_secrets", Keys: []string{"name"}, Columns: []string{"value"}}}

// copySecrets copies what keys are derived from, so that tokens and cursors stay valid.
func copySecrets(ctx context.Context, from, to *db.DB) error {
	rows, err := secrets.page(ctx, side{from, 0}, from.IsSQLite(), span{}, atOnce)
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, r := range rows {
		r[1] = []byte(r[1].(string)) // it is binary
	}
	return to.Exclusive(ctx, "move", 0, func(tx *db.Tx) error { return secrets.write(tx, rows) })
}
