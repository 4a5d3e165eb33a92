package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"kith/storage"
)

// layoutVersion names how rows are spread: 1,024 buckets by crc32 of the decimal
// id, each with all its rows on one shard.
const layoutVersion = 1

// meta is what a shard records about the store that it is part of.
type meta struct {
	uuid    string
	layout  int
	shards  int // of the store when it was laid out
	ordinal int
	buckets storage.BucketRange // at the beginning
}

const (
	// Served by the primary key.
	sqlReadMeta = `
SELECT store_uuid, layout, shards, ordinal, first_bucket, last_bucket
FROM kith_meta
WHERE id = 1`
)

var sqlWriteMeta = Both(`
INSERT OR IGNORE INTO kith_meta (id, store_uuid, layout, shards, ordinal, first_bucket, last_bucket)
VALUES (1, ?, ?, ?, ?, ?, ?)`)

// checkLayout compares what the shards record with the order and number in which
// they were given. Shards that record nothing are laid out, the first shard
// first, so that an interrupted start can be finished by the next.
func (d *DB) checkLayout(ctx context.Context) error {
	shards := d.All()
	found := make([]*meta, len(shards))
	begun, err := d.isBegun(ctx, shards) // before the rest is read
	if err != nil {
		return err
	}
	err = EveryShard(len(shards), func(i int) (err error) {
		if i > 0 {
			found[i], err = d.readMeta(ctx, shards[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	// The first shard is laid out first and read last: if another program is laying out the store,
	// no shard is found laid out without the first.
	if found[0], err = d.readMeta(ctx, shards[0]); err != nil {
		return err
	}
	if found[0] == nil {
		for i, m := range found {
			if m != nil {
				return fmt.Errorf("%w: %s is shard %d of a store, but shard 0 as given, %s, is new",
					storage.ErrLayout, shards[i].Name, m.ordinal, shards[0].Name)
			}
		}
	}
	d.laidOut = len(shards)
	if found[0] != nil {
		d.laidOut = found[0].shards
		if err := d.fitsNumber(ctx); err != nil {
			return err
		}
	}
	store := uuid.NewString()
	for i, n := range shards {
		m := found[i]
		if m == nil {
			if begun {
				return fmt.Errorf("shard %d (%s) is empty: %w", i, n.Name, ErrRestored)
			}
			if m, err = d.writeMeta(ctx, n, store, d.laidOut, storage.EvenBuckets(i, d.laidOut)); err != nil {
				return err
			}
		}
		if i == 0 {
			d.Made = found[0] == nil && m.uuid == store
			store, d.UUID, d.laidOut = m.uuid, m.uuid, m.shards
		}
		if err := d.fits(n, m); err != nil {
			return err
		}
	}
	return nil
}

// isBegun reports whether any shard has an epoch: then all have been laid out, and one that has not been has lost its data.
func (d *DB) isBegun(ctx context.Context, shards []*Shard) (begun bool, err error) {
	for _, n := range shards {
		if epoch, err := d.epochOf(ctx, n); epoch != 0 || err != nil {
			return true, err
		}
	}
	return false, nil
}

// fitsNumber compares how many shards are given with how many there are: those of the beginning have
// to be given, those that have been added may be.
func (d *DB) fitsNumber(ctx context.Context) error {
	listed, err := d.listed(ctx)
	if err != nil {
		return err
	}
	if given, are := len(d.All()), numberOf(listed, d.laidOut); given < d.laidOut || given > are {
		err = fmt.Errorf("%w: the store has %d shards, %d are given", storage.ErrLayout, are, given)
	}
	return err
}

// fits reports whether a shard is what its position in the list says. Shards that have been added
// come behind those of the beginning, and began without buckets.
func (d *DB) fits(n *Shard, m *meta) error {
	begin := d.begins(n.Ordinal)
	switch {
	case m.layout > layoutVersion:
		return fmt.Errorf("%w: %s has layout %d, this program knows %d: start a newer one",
			storage.ErrLayout, n.Name, m.layout, layoutVersion)
	case m.uuid != d.UUID:
		return fmt.Errorf("%w: %s belongs to another store than %s", storage.ErrLayout, n.Name, d.Shard(0).Name)
	case m.shards != d.laidOut:
		return fmt.Errorf("%w: the store has %d shards, %d are given", storage.ErrLayout, m.shards, len(d.All()))
	case m.ordinal != n.Ordinal:
		return fmt.Errorf("%w: %s is shard %d of the store, but it is given as number %d",
			storage.ErrLayout, n.Name, m.ordinal, n.Ordinal)
	case m.buckets != begin:
		return fmt.Errorf("%w: %s was made with buckets %d–%d, as shard %d it would have had %d–%d",
			storage.ErrLayout, n.Name, m.buckets.First, m.buckets.Last, n.Ordinal, begin.First, begin.Last)
	}
	return nil
}

// begins is the range that a shard is made with. One that has been added has none.
func (d *DB) begins(ordinal int) storage.BucketRange {
	if ordinal < d.laidOut {
		return storage.EvenBuckets(ordinal, d.laidOut)
	}
	return storage.BucketRange{First: 0, Last: -1}
}

// readMeta returns nil when the shard is new.
func (d *DB) readMeta(ctx context.Context, n *Shard) (*meta, error) {
	var m meta
	err := n.Write.QueryRowContext(ctx, sqlReadMeta).
		Scan(&m.uuid, &m.layout, &m.shards, &m.ordinal, &m.buckets.First, &m.buckets.Last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the layout of shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err))
	}
	return &m, nil
}

// writeMeta lays a shard out, unless another program was faster, and returns what is recorded then.
func (d *DB) writeMeta(ctx context.Context, n *Shard, store string, laidOut int, buckets storage.BucketRange) (*meta, error) {
	_, err := n.Write.ExecContext(ctx, d.Dialect.Text(sqlWriteMeta),
		store, layoutVersion, laidOut, n.Ordinal, buckets.First, buckets.Last)
	if err != nil {
		return nil, fmt.Errorf("lay out shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err))
	}
	return d.readMeta(ctx, n)
}
