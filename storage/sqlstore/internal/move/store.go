package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A whole store is copied to another one as its buckets would be to another shard: what is written
// meanwhile is noted, copied again and compared. In the end the old store takes no writes any more, and
// is read until everybody uses the new one.

// ErrCopied means that the store has been copied, and is not to be written to.
var ErrCopied = fmt.Errorf("%w: the store has been copied to another one, which is to be used", storage.ErrLayout)

const (
	// Served by the primary key.
	sqlSecrets = `
SELECT name, value
FROM kith_secrets
ORDER BY name`

	sqlWriteSecrets = `
REPLACE INTO kith_secrets (name, value)
VALUES (?, ?)`
)

// CopyStore copies a store to an empty one, or goes on with that. closed is how long the old store
// took no writes before the copy was whole.
func CopyStore(ctx context.Context, from, to *db.DB, cfg Config) (Report, error) {
	began := time.Now()
	var report Report
	var movers []*Mover
	for i := range from.All() {
		if err := leave(ctx, from, i, cfg.Token); err != nil {
			return report, err
		}
		m := newMover(from, Plan{From: i, To: db.OtherStore}, cfg)
		m.to, m.target = to, func(bucket int) int { shard, _ := to.Map.Now().Owner(bucket); return shard }
		m.wanted = func(bucket int) bool { shard, _ := from.Map.Now().Owner(bucket); return shard == i }
		m.guard = func(*db.Tx) error { return nil } // nobody uses it
		movers = append(movers, m)
	}
	each := func(phase Phase, f func(*Mover) error) error {
		for _, m := range movers {
			m.enter(phase)
			if err := f(m); err != nil {
				return err
			}
		}
		return nil
	}
	err := each(Copying, func(m *Mover) error { return m.copy(ctx) })
	if err == nil {
		err = each(Comparing, func(m *Mover) error { return m.compareKeys(ctx) })
	}
	if err == nil {
		err = each(Switching, func(m *Mover) error { return m.catchUp(ctx) })
	}
	closed := time.Now()
	if err == nil {
		err = each(Switching, func(m *Mover) error { return m.change(ctx, db.Closed, db.Leaving) })
	}
	if err == nil {
		err = each(Switching, func(m *Mover) error { _, err := m.copyNoted(ctx, true); return err })
	}
	if err == nil {
		err = copySecrets(ctx, from, to)
	}
	if err == nil {
		err = each(Switching, func(m *Mover) error { return m.change(ctx, db.Left, db.Closed) })
	}
	for _, m := range movers {
		report.Rows, report.Again = report.Rows+m.report.Rows, report.Again+m.report.Again
		report.Compared, report.Mended = report.Compared+m.report.Compared, report.Mended+m.report.Mended
	}
	report.Waited, report.Took = time.Since(closed), time.Since(began)
	return report, err
}

// leave notes from now on what is written to a shard.
func leave(ctx context.Context, d *db.DB, ordinal int, token string) error {
	return step(ctx, d, ordinal, func(old []db.Claim) ([]db.Claim, error) {
		for i, c := range old {
			switch {
			case c.State == db.Left && c.Other == db.OtherStore:
				return nil, ErrCopied
			case c.State != db.Owned && c.Other != db.OtherStore:
				return nil, fmt.Errorf("%w: buckets %d–%d of shard %d are being moved: end that first (kith shards resume)", storage.ErrLayout, c.First, c.Last, ordinal)
			}
			old[i].State, old[i].Other, old[i].Token, old[i].Since = db.Leaving, db.OtherStore, token, now()
		}
		return old, nil
	})
}

// change changes the state of all claims of the shard.
func (m *Mover) change(ctx context.Context, to, from db.ClaimState) error {
	return step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) {
		for i, c := range old {
			if c.State != from || c.Token != m.cfg.Token {
				return nil, fmt.Errorf("%w: the copy has been taken over or back by another process", storage.ErrUnavailable)
			}
			old[i].State, old[i].Since = to, now()
		}
		return old, nil
	})
}

// AbortCopy lets a store be written to again that has been copied, or is being copied.
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

// compareKeys is compare for a store that was empty: it looks each row up.
func (m *Mover) compareKeys(ctx context.Context) error {
	for _, t := range tables {
		m.phase.Table = t.name
		err := m.pages(ctx, t, m.plan.From, func(rows []row, _ row) error {
			for chunk := range slices.Chunk(rows, atOnce) {
				keys := make([]row, len(chunk))
				for i, r := range chunk {
					keys[i] = t.key(r)
				}
				copied, err := m.copies(ctx, t, keys)
				if err == nil {
					err = m.settle(ctx, t, chunk, copied)
				}
				if err != nil {
					return err
				}
			}
			m.progress(len(rows))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copySecrets copies what keys are derived from, so that tokens and cursors stay good.
func copySecrets(ctx context.Context, from, to *db.DB) error {
	t := table{name: "kith_secrets", keys: []string{"name"}, columns: []string{"value"}}
	rows, err := t.query(ctx, side{from, 0}, sqlSecrets, nil)
	if err != nil || len(rows) == 0 {
		return err
	}
	return to.Exclusive(ctx, "move", 0, func(tx *db.Tx) error {
		for _, r := range rows {
			if _, err := tx.Exec(1, sqlWriteSecrets, r[0], []byte(r[1].(string))); err != nil {
				return err
			}
		}
		return nil
	})
}
