package db

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/shard"
)

// ErrStill is the error of databases whose buckets cannot move: a store on TiDB spreads itself.
var ErrStill = fmt.Errorf("%w: a store on TiDB is one shard, and grows by nodes of TiDB and TiKV", storage.ErrLayout)

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
	ordinal = len(d.All())
	n, err := d.prepare(ctx, ordinal, plain)
	if err != nil {
		return 0, err
	}
	err = d.beginEpoch(ctx, n, shard.Range{First: 0, Last: -1})
	if err == nil {
		err = d.isFresh(ctx, n)
	}
	if err = errors.Join(err, n.close()); err == nil {
		err = d.listShard(ctx, ordinal, plain)
	}
	if err != nil {
		return 0, err
	}
	return ordinal, d.Refresh(ctx)
}
