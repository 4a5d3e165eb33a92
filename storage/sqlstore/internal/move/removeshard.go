package move

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// RemoveShard takes the last shard out of the store, if it has no buckets and no rows, or continues to do so.
// One transaction of its database decides it, and prevents buckets from being moved there meanwhile.
func RemoveShard(ctx context.Context, d *db.DB, ordinal int, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.Step("prepare")
	if !d.Dialect.Moves {
		return db.ErrStill
	}
	if err := d.Refresh(ctx); err != nil {
		return err
	}
	last := len(d.All()) - 1
	switch {
	case ordinal == 0:
		return fmt.Errorf("%w: shard 0 has the checkpoints, the leases and the list of shards: it can be replaced, not removed", storage.ErrLayout)
	case ordinal < last:
		return fmt.Errorf("%w: shard %d is not the last one: move the buckets of shard %d to it, and remove that", storage.ErrLayout, ordinal, last)
	case ordinal == last:
		if err := vacant(ctx, d, ordinal); err != nil {
			return err
		}
		cfg.Step("retire")
		if err := retire(ctx, d, ordinal); err != nil {
			return err
		}
	}
	cfg.Step("record")
	listed, err := d.Unlist(ctx, ordinal)
	if err == nil && !listed && ordinal > last {
		err = fmt.Errorf("%w: there is no shard %d", storage.ErrLayout, ordinal)
	}
	if err != nil {
		return err
	}
	return d.Refresh(ctx)
}

// retire records on a database without buckets that it is no longer a shard.
func retire(ctx context.Context, d *db.DB, ordinal int) error {
	return d.Hasty(ctx, "remove", ordinal, func(tx *db.Tx) error {
		if _, err := lockEpoch(tx); err != nil {
			return err
		}
		claims, err := claimsOf(ctx, within{tx})
		if err == nil && len(claims) > 0 {
			err = fmt.Errorf("%w: shard %d has buckets %d–%d", storage.ErrLayout, ordinal, claims[0].First, claims[0].Last)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(1, db.SQLForgetShard, ordinal); err != nil {
			return err
		}
		_, err = tx.Exec(1, sqlRetire)
		return err
	})
}
