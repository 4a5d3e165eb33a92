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
// id, a run of them to each shard.
const layoutVersion = 1

// meta is what a shard records about the store that it is part of.
type meta struct {
	uuid        string
	layout      int
	shards      int
	ordinal     int
	first, last int // buckets
}

const (
	// Served by the primary key.
	sqlReadMeta = `
SELECT store_uuid, layout, shards, ordinal, first_bucket, last_bucket
FROM kith_meta
WHERE id = 1`
)

var sqlWriteMeta = Text{
	MySQL: `
INSERT IGNORE INTO kith_meta (id, store_uuid, layout, shards, ordinal, first_bucket, last_bucket)
VALUES (1, ?, ?, ?, ?, ?, ?)`,
	SQLite: `
INSERT OR IGNORE INTO kith_meta (id, store_uuid, layout, shards, ordinal, first_bucket, last_bucket)
VALUES (1, ?, ?, ?, ?, ?, ?)`,
}

// checkLayout compares what the shards record with the order and number in which
// they were given. Shards that record nothing are laid out, the first shard
// first, so that a start that was cut off in between can be finished by the next.
func (d *DB) checkLayout(ctx context.Context) error {
	found := make([]*meta, len(d.Shards))
	err := d.EveryShard(func(i int) (err error) {
		if i > 0 {
			found[i], err = d.readMeta(ctx, i)
		}
		return err
	})
	if err != nil {
		return err
	}
	// Laid out first, the first shard is read last: where another program is at it, no
	// shard is found without the first.
	if found[0], err = d.readMeta(ctx, 0); err != nil {
		return err
	}
	if found[0] == nil {
		for i, m := range found {
			if m != nil {
				return fmt.Errorf("%w: %s is shard %d of a store, but shard 0 as given, %s, is new",
					storage.ErrLayout, d.Shards[i].Name, m.ordinal, d.Shards[0].Name)
			}
		}
	}
	store := uuid.NewString()
	for i := range d.Shards {
		m := found[i]
		if m == nil {
			if m, err = d.writeMeta(ctx, i, store); err != nil {
				return err
			}
		}
		if i == 0 {
			store, d.UUID = m.uuid, m.uuid
		}
		if err := d.fits(i, m, store); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether a shard is what its position in the list says.
func (d *DB) fits(i int, m *meta, store string) error {
	first, last := d.Place.Range(i)
	switch name := d.Shards[i].Name; {
	case m.layout > layoutVersion:
		return fmt.Errorf("%w: %s has layout %d, this program knows %d: start a newer one",
			storage.ErrLayout, name, m.layout, layoutVersion)
	case m.uuid != store:
		return fmt.Errorf("%w: %s belongs to another store than %s", storage.ErrLayout, name, d.Shards[0].Name)
	case m.shards != len(d.Shards):
		return fmt.Errorf("%w: the store has %d shards, %d are given", storage.ErrLayout, m.shards, len(d.Shards))
	case m.ordinal != i:
		return fmt.Errorf("%w: %s is shard %d of the store, but it is given as number %d",
			storage.ErrLayout, name, m.ordinal, i)
	case m.first != first || m.last != last:
		return fmt.Errorf("%w: %s holds buckets %d–%d, as shard %d it would hold %d–%d",
			storage.ErrLayout, name, m.first, m.last, i, first, last)
	}
	return nil
}

// readMeta returns nil when the shard is new.
func (d *DB) readMeta(ctx context.Context, i int) (*meta, error) {
	var m meta
	err := d.Shards[i].Write.QueryRowContext(ctx, sqlReadMeta).
		Scan(&m.uuid, &m.layout, &m.shards, &m.ordinal, &m.first, &m.last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the layout of shard %d (%s): %w", i, d.Shards[i].Name, d.Dialect.StorageError(ctx, err))
	}
	return &m, nil
}

// writeMeta lays a shard out, unless another program was faster, and returns what
// is there then.
func (d *DB) writeMeta(ctx context.Context, i int, store string) (*meta, error) {
	first, last := d.Place.Range(i)
	_, err := d.Shards[i].Write.ExecContext(ctx, d.Dialect.Text(sqlWriteMeta),
		store, layoutVersion, len(d.Shards), i, first, last)
	if err != nil {
		return nil, fmt.Errorf("lay out shard %d (%s): %w", i, d.Shards[i].Name, d.Dialect.StorageError(ctx, err))
	}
	return d.readMeta(ctx, i)
}
