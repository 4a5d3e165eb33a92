package db

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// ErrStill is the error of databases whose buckets cannot move: a store on TiDB spreads itself.
var ErrStill = fmt.Errorf("%w: a store on TiDB is one shard, and grows by nodes of TiDB and TiKV", storage.ErrLayout)

// sqlListShard records on shard 0 where an added shard is, unless another one has its number.
var sqlListShard = Both(`
INSERT OR IGNORE INTO kith_shards (ordinal, address)
VALUES (?, ?)`)

// Add makes an empty database the next shard of the store, which owns nothing yet. Programs that have
// the store open learn of it within seconds. It returns the ordinal, also if the
// database has been added before: an earlier call may have been cut off. [storage.ErrLayout] if the database is another store's, or a shard of the beginning.
func (d *DB) Add(ctx context.Context, address string) (ordinal int, err error) {
	if !d.Dialect.Moves {
		return 0, ErrStill
	}
	if err := d.Refresh(ctx); err != nil {
		return 0, err
	}
	plain, err := d.Plain(address)
	if err != nil {
		return 0, err
	}
	listed, err := d.listed(ctx)
	if err != nil {
		return 0, err
	}
	for ordinal, address := range listed {
		if address == plain {
			return ordinal, nil
		}
	}
	ordinal = numberOf(listed, d.laidOut)
	n, err := d.prepare(ctx, ordinal, plain)
	if err != nil {
		return 0, err
	}
	err = d.beginEpoch(ctx, n)
	if err = errors.Join(err, n.close()); err == nil {
		err = d.Transact(ctx, "shards", 0, func(tx *Tx) error {
			n, err := tx.Exec(1, d.Dialect.Text(sqlListShard), ordinal, plain)
			if err == nil && n == 0 {
				err = fmt.Errorf("%w: another database has become shard %d meanwhile: empty this one, and add it again", storage.ErrLayout, ordinal)
			}
			return err
		})
	}
	if err != nil {
		return 0, err
	}
	return ordinal, d.Refresh(ctx)
}

// prepare opens an empty database, makes its tables, and records in it that it is a shard of the store.
func (d *DB) prepare(ctx context.Context, ordinal int, plain string) (*Shard, error) {
	address, err := d.withCredentials(plain)
	if err != nil {
		return nil, err
	}
	made := d.cfg
	made.MustExist = false
	opened, err := d.connect(ctx, made, ordinal, []string{address})
	if err != nil {
		return nil, err
	}
	n := opened[0]
	if err = d.isNone(ctx, n); err == nil {
		err = d.migrate(ctx, opened)
	}
	var m *meta
	if err == nil {
		m, err = d.writeMeta(ctx, n, d.UUID, d.laidOut, d.begins(ordinal))
	}
	if err == nil {
		err = d.fits(n, m)
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// isNone returns an error if a database is a shard of the store, or of another engine.
func (d *DB) isNone(ctx context.Context, n *Shard) error {
	if n.dialect != d.Shard(0).dialect {
		return fmt.Errorf("%w: %s is another engine than the store's", storage.ErrLayout, n.Name)
	}
	id, err := d.Dialect.identity(ctx, n)
	if err != nil {
		return err
	}
	for i, other := range d.All() {
		switch known, err := d.Dialect.identity(ctx, other); {
		case err != nil:
			return err
		case known == id:
			return fmt.Errorf("%w: %s is shard %d already", storage.ErrLayout, n.Name, i)
		}
	}
	return nil
}
