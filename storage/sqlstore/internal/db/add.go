package db

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

const sqlAddShard = `
INSERT INTO kith_shards (ordinal, address)
VALUES (?, ?)`

// ErrStill is the error of databases whose buckets cannot move: a store on TiDB spreads itself.
var ErrStill = fmt.Errorf("%w: a store on TiDB is one shard, and grows by nodes of TiDB and TiKV", storage.ErrLayout)

// Add makes an empty database the next shard of the store, which owns nothing yet. Programs that have
// the store open learn of it within seconds. It returns the ordinal. If it is cut off, it can run
// again. [storage.ErrLayout] if the database is another store's, or a shard already.
func (d *DB) Add(ctx context.Context, address string) (ordinal int, err error) {
	if !d.Dialect.Moves {
		return 0, ErrStill
	}
	if err := d.Refresh(ctx); err != nil {
		return 0, err
	}
	plain, err := d.stored(address)
	if err != nil {
		return 0, err
	}
	if address, err = d.withCredentials(plain); err != nil {
		return 0, err
	}
	ordinal = len(d.All())
	opened, err := d.connect(ctx, ordinal, []string{address})
	if err != nil {
		return 0, err
	}
	n := opened[0]
	defer func() { err = errors.Join(err, n.close()) }()
	if n.dialect != d.Shard(0).dialect {
		return 0, fmt.Errorf("%w: %s is another engine than the store's", storage.ErrLayout, n.Name)
	}
	id, err := d.Dialect.identity(ctx, n)
	if err != nil {
		return 0, err
	}
	for i, other := range d.All() {
		if known, err := d.Dialect.identity(ctx, other); err != nil {
			return 0, err
		} else if known == id {
			return 0, fmt.Errorf("%w: %s is shard %d already", storage.ErrLayout, n.Name, i)
		}
	}
	if err := d.migrate(ctx, opened); err != nil {
		return 0, err
	}
	m, err := d.writeMeta(ctx, n, d.UUID, d.laidOut, noBuckets)
	if err == nil {
		err = d.fits(n, m)
	}
	if err == nil {
		err = d.beginEpoch(ctx, n)
	}
	if err != nil {
		return 0, err
	}
	if _, err := d.Shard(0).Write.ExecContext(ctx, sqlAddShard, ordinal, plain); err != nil {
		return 0, fmt.Errorf("record shard %d on shard 0: %w", ordinal, d.Dialect.StorageError(ctx, err))
	}
	return ordinal, d.Refresh(ctx)
}
