package move

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore/internal/db"
)

// remove waits until every gateway knows of the move, and removes the rows from where they were.
func (m *Mover) remove(ctx context.Context, left db.Claim) error {
	m.enter(Removing)
	m.cfg.Step("keep")
	if err := sleep.For(ctx, m.cfg.Keep-time.Since(left.Seen)); err != nil { // no clock of another machine is used
		return err
	}
	m.cfg.Step("remove")
	err := step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) { // a remover that has been stopped removes nothing more
		var there []db.Claim // it may have been restored to before it had them
		err := side{m.db, m.plan.To}.read(ctx, sqlClaims, nil, eachClaim(&there))
		if c, ok := find(old, m.plan.Buckets); err != nil || !ok || c.Since != left.Since || !m.isServed(there) {
			return nil, cmp.Or(err, errStep)
		}
		left.Token, left.Since = m.cfg.Token, removing
		return cut(old, m.plan.Buckets, left, db.Left)
	})
	if err == nil {
		err = m.removeRows(ctx, db.Left)
	}
	if err == nil {
		m.enter(Done)
	}
	return err
}

// removeRows removes the plan's rows from the shard that no longer has them, and then its claim.
func (m *Mover) removeRows(ctx context.Context, state db.ClaimState) error {
	for _, t := range slices.Concat(tables, packedTables) {
		m.phase.Table = t.Name
		var keys []row // if a few buckets move, a page has only some of their rows, which are not worth a transaction
		flush := func() error {
			defer func() { keys = nil }()
			return m.removeKeys(ctx, t, keys, state)
		}
		err := m.pages(ctx, t, m.plan.From, nil, func(rows []row, upTo row) error {
			for _, r := range rows {
				keys = append(keys, t.key(r))
			}
			if len(keys) < removedAtOnce && upTo != nil {
				return nil
			}
			return flush()
		})
		if err != nil {
			return err
		}
	}
	err := step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) {
		return cut(old, m.plan.Buckets, db.Claim{BucketRange: storage.BucketRange{First: 0, Last: -1}}, state)
	}, forgetCopied(m.plan.Buckets.First), func(tx *db.Tx) error { return m.holds(tx, state) })
	if errors.Is(err, errStep) {
		return nil // another has done it
	}
	return err
}

// removedAtOnce is how many rows one transaction removes. The shard's writers wait meanwhile.
const removedAtOnce = 500

// removeKeys removes rows by their keys.
func (m *Mover) removeKeys(ctx context.Context, t table, keys []row, state db.ClaimState) error {
	for chunk := range slices.Chunk(keys, removedAtOnce) {
		err := m.db.Exclusive(ctx, "move", m.plan.From, func(tx *db.Tx) error {
			if err := errors.Join(m.mark(tx), m.holds(tx, state)); err != nil {
				return err
			}
			return t.remove(tx, chunk)
		})
		if err != nil {
			return err
		}
	}
	m.report.Removed += int64(len(keys))
	m.progress(len(keys))
	return nil
}
