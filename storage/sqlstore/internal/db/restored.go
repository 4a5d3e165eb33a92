package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/doctor"
)

// ErrRestored is the error of writes to a database that has been restored, or is being restored, see docs/how-to/back-up.md: what a
// gateway wrote between the rows of a dump and those of a binlog would stop the replay, or be lost. Dumps leave the table
// kith_admitted out. Every transaction that writes reads it, so none succeeds until [DB.Readmit] has made it again.
// [storage.ErrUnavailable].
var ErrRestored = fmt.Errorf("%w: it is being restored, or has been: nothing is written there before kith shards readmit", storage.ErrUnavailable)

const (
	// Served by the primary key.
	sqlAdmitted = `
SELECT id
FROM kith_admitted
WHERE id = ?`

	// newLife is how much the epoch rises then.
	newLife = 1_000_000

	// Programs that were stopped before the restore, and go on after it, know an epoch that this one is above.
	// Served by the primary key.
	sqlNewLife = `
UPDATE kith_epoch
SET epoch = epoch + 1000000
WHERE id = 1`

	sqlMakeAdmitted = `
CREATE TABLE IF NOT EXISTS kith_admitted (id INTEGER NOT NULL PRIMARY KEY)`

	sqlAdmit = `
REPLACE INTO kith_admitted (id)
VALUES (1)`

	// Served by the primary key.
	sqlDismiss = `
DELETE FROM kith_admitted
WHERE id = 1`

	// Served by the primary key. The table is the last one of a dump.
	sqlLastTable = `
SELECT 1
FROM users
LIMIT 1`
)

// restored is an error about a table, or its row, as [ErrRestored] if it is missing.
func restored(err error) error {
	if errors.Is(err, sql.ErrNoRows) || doctor.IsError(err, 1049, 1146) { // no such database, no such table
		return ErrRestored
	}
	return err
}

// admitted returns [ErrRestored] if a database has been restored and is not to be written to yet.
func admitted(ctx context.Context, in interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) error {
	return restored(in.QueryRowContext(ctx, sqlAdmitted, 1).Scan(new(int)))
}

// ifAdmitted is a write of a transaction that does not hold the buckets.
func ifAdmitted(write func(*Tx) error) func(*Tx) error {
	return func(t *Tx) error {
		if err := admitted(t.ctx, t.tx); err != nil {
			return err
		}
		return write(t)
	}
}

// Admitted returns [ErrRestored] if a shard has been restored and is not to be written to yet.
func (d *DB) Admitted(ctx context.Context, ordinal int) error {
	n := d.Shard(ordinal)
	if err := admitted(ctx, n.Write); err != nil {
		return fmt.Errorf("shard %d (%s): %w", ordinal, n.Name, d.Dialect.StorageError(ctx, err))
	}
	return nil
}

// Readmit lets a shard be written to that has been restored, once its tables are there and its buckets are nobody else's. If it
// was added to the store and is in another database now, the store has it there from then on.
// [storage.ErrLayout].
func (d *DB) Readmit(ctx context.Context, ordinal int) error {
	n := d.Shard(ordinal)
	if err := n.Write.QueryRowContext(ctx, sqlLastTable).Scan(new(int)); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("the dump is not loaded: %w", err)
	}
	if err := errors.Join(d.Refresh(ctx), claimedOnce(d.Claims())); err != nil {
		return err
	}
	if err := d.replace(ctx, n); err != nil {
		return err
	}
	for _, text := range []string{sqlMakeAdmitted, sqlNewLife, sqlAdmit} {
		if _, err := n.migrations.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("readmit shard %d (%s): %w", ordinal, n.Name, d.Dialect.StorageError(ctx, err))
		}
	}
	return d.Refresh(ctx)
}

// claimedOnce returns an error if two shards say that they have a bucket: one has been restored to before a move.
func claimedOnce(claims [][]Claim) error {
	owners := make(map[int]int, storage.Buckets)
	for i, list := range claims {
		for _, c := range list {
			for b := c.First; b <= c.Last && c.State <= Closed; b++ {
				if other, twice := owners[b]; twice {
					return fmt.Errorf("%w: shards %d and %d both have bucket %d: one is restored to before a move", storage.ErrLayout, other, i, b)
				}
				owners[b] = i
			}
		}
	}
	return nil
}
