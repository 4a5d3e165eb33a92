package sqlstore

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
	sqlReadMeta = `
SELECT store_uuid, layout, shards, ordinal, first_bucket, last_bucket
FROM kith_meta
WHERE id = 1`

	sqlWriteMeta = ` INTO kith_meta
  (id, store_uuid, layout, shards, ordinal, first_bucket, last_bucket)
VALUES (1, ?, ?, ?, ?, ?, ?)`
)

// checkLayout compares what the shards record with the order and number in which
// they were given. Shards that record nothing are laid out, the first shard
// first, so that a start that was cut off in between can be finished by the next.
func (s *Store) checkLayout(ctx context.Context) error {
	found := make([]*meta, len(s.shards))
	err := s.everyShard(func(i int) (err error) {
		if i > 0 {
			found[i], err = s.readMeta(ctx, i)
		}
		return err
	})
	if err != nil {
		return err
	}
	// Laid out first, the first shard is read last: where another program is at it, no
	// shard is found without the first.
	if found[0], err = s.readMeta(ctx, 0); err != nil {
		return err
	}
	if found[0] == nil {
		for i, m := range found {
			if m != nil {
				return fmt.Errorf("%w: %s is shard %d of a store, but shard 0 as given, %s, is new",
					storage.ErrLayout, s.shards[i].name, m.ordinal, s.shards[0].name)
			}
		}
	}
	store := uuid.NewString()
	for i := range s.shards {
		m := found[i]
		if m == nil {
			if m, err = s.writeMeta(ctx, i, store); err != nil {
				return err
			}
		}
		if i == 0 {
			store, s.uuid = m.uuid, m.uuid
		}
		if err := s.fits(i, m, store); err != nil {
			return err
		}
	}
	return nil
}

// fits tells whether a shard is what its place says.
func (s *Store) fits(i int, m *meta, store string) error {
	first, last := s.place.Range(i)
	switch name := s.shards[i].name; {
	case m.layout > layoutVersion:
		return fmt.Errorf("%w: %s has layout %d, this program knows %d: start a newer one",
			storage.ErrLayout, name, m.layout, layoutVersion)
	case m.uuid != store:
		return fmt.Errorf("%w: %s belongs to another store than %s", storage.ErrLayout, name, s.shards[0].name)
	case m.shards != len(s.shards):
		return fmt.Errorf("%w: the store has %d shards, %d are given", storage.ErrLayout, m.shards, len(s.shards))
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
func (s *Store) readMeta(ctx context.Context, i int) (*meta, error) {
	var m meta
	err := s.shards[i].write.QueryRowContext(ctx, sqlReadMeta).
		Scan(&m.uuid, &m.layout, &m.shards, &m.ordinal, &m.first, &m.last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the layout of shard %d (%s): %w", i, s.shards[i].name, s.sql.storageError(ctx, err))
	}
	return &m, nil
}

// writeMeta lays a shard out, unless another program was faster, and returns what
// is there then.
func (s *Store) writeMeta(ctx context.Context, i int, store string) (*meta, error) {
	first, last := s.place.Range(i)
	_, err := s.shards[i].write.ExecContext(ctx, s.sql.insertIgnore+sqlWriteMeta,
		store, layoutVersion, len(s.shards), i, first, last)
	if err != nil {
		return nil, fmt.Errorf("lay out shard %d (%s): %w", i, s.shards[i].name, s.sql.storageError(ctx, err))
	}
	return s.readMeta(ctx, i)
}
