package move

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// The control tables of shard 0, which move with it from one database to another.
var (
	secrets = table{name: "kith_secrets", keys: []string{"name"}, columns: []string{"value"}, texts: []string{"name", "value"}}

	controls = []table{
		secrets,
		{name: "kith_checkpoints", keys: []string{"name"}, columns: []string{"value"}, texts: []string{"name", "value"}},
		{name: "kith_leases", keys: []string{"kind", "slot"}, columns: []string{"owner", "leased_until"}, texts: []string{"kind", "owner"}},
		{name: "kith_shards", keys: []string{"ordinal"}, columns: []string{"address"}, texts: []string{"address"}},
	}
)

const (
	// The epoch that the new database begins with, below 0 until it is the shard. Served by the primary key.
	sqlAwait = `
UPDATE kith_epoch
SET epoch = ?
WHERE id = 1 AND epoch < -1`

	// Served by the primary key.
	sqlRetire = `
UPDATE kith_epoch
SET epoch = -1
WHERE id = 1`
)

// Replace lets an empty database take the place of a shard that has no buckets and no rows, or continues to do so. What shard
// 0 has besides is copied: checkpoints, leases, secrets, where the other shards are. One transaction of
// the old database decides it, and prevents these from being written meanwhile.
func Replace(ctx context.Context, d *db.DB, ordinal int, address string, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.Step("prepare")
	if !d.Dialect.Moves {
		return db.ErrStill
	}
	if err := d.Refresh(ctx); err != nil {
		return err
	}
	plain, err := d.Plain(address)
	if err != nil {
		return err
	}
	beside, err := d.Beside(ctx, ordinal, plain)
	if err == nil {
		defer beside.Close()
		if err = vacant(ctx, d, ordinal); err == nil {
			err = handOver(ctx, d, beside, ordinal, plain, cfg)
		}
	}
	if err != nil && !errors.Is(err, db.ErrPlaced) {
		return err
	}
	cfg.Step("open")
	if err := d.Refresh(ctx); err != nil {
		return err
	}
	cfg.Step("record")
	return d.RecordShard(ctx, ordinal, plain)
}

// vacant returns an error unless a shard has no buckets, none are moving, and no rows are left.
func vacant(ctx context.Context, d *db.DB, ordinal int) error {
	if claims := d.Claims()[ordinal]; len(claims) > 0 {
		return fmt.Errorf("%w: shard %d has buckets %d–%d, or rows of them: move them to another shard first", storage.ErrLayout, ordinal, claims[0].First, claims[0].Last)
	}
	for _, t := range tables {
		rows, err := t.page(ctx, side{d, ordinal}, d.IsSQLite(), span{}, 1)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			return fmt.Errorf("%w: shard %d has no buckets, but rows in %s", storage.ErrLayout, ordinal, t.name)
		}
	}
	return nil
}

// handOver copies the control tables and retires the old database, in one transaction there.
func handOver(ctx context.Context, d, beside *db.DB, ordinal int, plain string, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cfg.Step("hand over")
	return d.Hasty(ctx, "replace", ordinal, func(tx *db.Tx) error {
		epoch, err := lockEpoch(tx)
		if err != nil {
			return err
		}
		if claims, err := claimsOf(ctx, within{tx}); err != nil || len(claims) > 0 {
			return errors.Join(err, errStep)
		}
		err = beside.Exclusive(ctx, "replace", 0, func(to *db.Tx) error {
			for _, t := range controls {
				if err := t.copyAll(ctx, within{tx}, to); err != nil {
					return err
				}
			}
			_, err := to.Exec(1, sqlAwait, -(epoch + 1))
			return err
		})
		if err != nil {
			return err
		}
		cfg.Step("decide")
		if _, err := tx.Exec(1, db.SQLRecordShard, ordinal, plain); err != nil {
			return err
		}
		_, err = tx.Exec(1, sqlRetire)
		return err
	})
}

// within reads in a transaction.
type within struct{ *db.Tx }

func (w within) read(_ context.Context, text string, args []any, each func(*sql.Rows) error) error {
	return w.Read(1, text, args, each)
}

// copyAll makes a small table what it is in another database.
func (t table) copyAll(ctx context.Context, from reader, to *db.Tx) error {
	rows, err := t.query(ctx, from, fmt.Sprintf("SELECT %s\nFROM %s\nORDER BY %s", list(t.all()), t.name, list(t.keys)), nil)
	if err != nil {
		return err
	}
	if _, err := to.Exec(1, "DELETE FROM "+t.name); err != nil {
		return err
	}
	for _, r := range rows {
		for i, c := range t.all() {
			if c == "value" {
				r[i] = []byte(r[i].(string)) // it is binary
			}
		}
		if err := t.write(to, []row{r}); err != nil {
			return err
		}
	}
	return nil
}
