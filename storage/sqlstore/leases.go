package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Leases are on the first shard.
const (
	// Served by the primary key.
	sqlReadLeases = `
SELECT slot, owner, leased_until
FROM kith_leases
WHERE kind = ?
ORDER BY slot /*! FOR UPDATE */`

	// Served by the primary key.
	sqlHolders = `
SELECT owner, leased_until
FROM kith_leases
WHERE kind = ?`

	// Served by idx_lease_owner or the primary key: both begin with the kind.
	sqlRelease = `
DELETE FROM kith_leases
WHERE kind = ? AND owner = ? AND ? IN (0, leased_until)`

	// A slot that another owner has taken since the read stays. Served by the primary key.
	sqlEndLease = `
DELETE FROM kith_leases
WHERE kind = ? AND slot = ? AND (owner = ? OR leased_until <= ?)`
)

var sqlTakeLease = db.Both(`
INSERT OR IGNORE INTO kith_leases (kind, slot, owner, leased_until)
VALUES (?, ?, ?, ?)`)

// Lease implements [storage.Leaser].
func (s *Store) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	slot := -1
	err := s.transactOn(ctx, "leases", 0, func(w *writer) error {
		held, expired, free, err := w.leases(kind, owner, now)
		if err != nil {
			return err
		}
		if held >= slots { // there were more slots then
			if _, err := w.Exec(1, sqlRelease, kind, owner, 0); err != nil {
				return err
			}
		}
		switch {
		case held >= 0 && held < slots:
			slot = held
		case free < slots:
			slot = free
		case expired >= 0 && expired < slots:
			slot = expired
		default:
			return fmt.Errorf("%w: %d of kind %s", storage.ErrNoLease, slots, kind)
		}
		if _, err := w.Exec(1, sqlEndLease, kind, slot, owner, int64(now)); err != nil {
			return err
		}
		n, err := w.Exec(1, s.sql.Text(sqlTakeLease), kind, slot, owner, int64(until))
		if err == nil && n == 0 {
			err = db.ErrAgain // another owner has taken it since the read
		}
		return err
	})
	return slot, err
}

// leases looks for the owner's slot, an expired one (each −1 where there is none)
// and the first that has never been taken.
func (w *writer) leases(kind, owner string, now storage.Micros) (held, expired, free int, err error) {
	held, expired = -1, -1
	err = w.Read(1, sqlReadLeases, []any{kind}, func(rows *sql.Rows) error {
		var slot int
		var by string
		var until storage.Micros
		if err := rows.Scan(&slot, &by, &until); err != nil {
			return err
		}
		switch {
		case by == owner:
			held = slot
		case until <= now && expired < 0:
			expired = slot
		}
		if slot == free {
			free++
		}
		return nil
	})
	return held, expired, free, err
}

// Release implements [storage.Leaser].
func (s *Store) Release(ctx context.Context, kind, owner string, until storage.Micros) error {
	return s.transactOn(ctx, "leases", 0, func(w *writer) error {
		_, err := w.Exec(1, sqlRelease, kind, owner, int64(until))
		return err
	})
}

// Holders implements [storage.Leaser].
func (s *Store) Holders(ctx context.Context, kind string) (map[string]storage.Micros, error) {
	holders := make(map[string]storage.Micros)
	err := s.db.Query(ctx, "leases", 0, 1, sqlHolders, []any{kind}, db.EachEntry(db.TwoColumns, func(owner string, until storage.Micros) { holders[owner] = until }))
	return holders, err
}
