package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/shard"
)

// Another database may take the place of a shard that has no buckets: it gets the shard's ordinal, and on
// shard 0 the checkpoints, leases, secrets, trusted documents and the list of shards. The old database records that it is gone,
// and which database has taken its place, by the epoch that every transaction holds. So nothing is written to it any more, and
// programs that know only the old database find the new one.

// goneEpoch is the epoch of a database that is no longer a shard. A database that is to become a shard
// has a lower epoch.
const goneEpoch = -1

// ErrPlaced is the error of [DB.Beside] for a database that is the shard already.
var ErrPlaced = errors.New("the database is the shard already")

const (
	// Served by the primary key.
	sqlPresentEpoch = `
SELECT epoch
FROM kith_epoch
WHERE id = 1`

	// Served by the primary key.
	sqlSuccessor = `
SELECT address
FROM kith_shards
WHERE ordinal = ?`

	// Served by the primary key.
	SQLBeginShard = `
UPDATE kith_epoch
SET epoch = -epoch
WHERE id = 1 AND epoch < -1`

	sqlWaitingEpoch = `
INSERT INTO kith_epoch (id, epoch)
VALUES (1, -2)`

	// Served by the primary key.
	sqlMoveShard = `
UPDATE kith_shards
SET address = ?
WHERE ordinal = ?`

	// SQLRecordShard records where a shard is.
	SQLRecordShard = `
REPLACE INTO kith_shards (ordinal, address)
VALUES (?, ?)`
)

// epochOf reads the epoch of a database, 0 if it has none yet.
func (d *DB) epochOf(ctx context.Context, n *Shard) (epoch int64, err error) {
	err = n.Write.QueryRowContext(ctx, sqlPresentEpoch).Scan(&epoch)
	if errors.Is(err, sql.ErrNoRows) || isNoTable(err) {
		return 0, nil
	}
	if err != nil {
		err = fmt.Errorf("read the epoch of shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err))
	}
	return epoch, err
}

// successor opens the database that has taken the place of one that is gone. If no program has used it
// yet, it is a shard from now on: that was decided when the old one was retired. [errRemoved] if there is
// none.
func (d *DB) successor(ctx context.Context, gone *Shard) (*Shard, error) {
	var address string
	epoch, err := d.epochOf(ctx, gone)
	if err == nil && epoch != goneEpoch {
		err = fmt.Errorf("%w: %s is to take the place of shard %d, and has not: run kith shards replace again", storage.ErrLayout, gone.Name, gone.Ordinal)
	}
	if err == nil {
		err = gone.Write.QueryRowContext(ctx, sqlSuccessor, gone.Ordinal).Scan(&address)
	}
	if err == nil && address == removed {
		return d.addedAgain(ctx, gone)
	}
	if err != nil {
		return nil, fmt.Errorf("ask where shard %d is (%s): %w", gone.Ordinal, gone.Name, err)
	}
	return d.follow(ctx, gone, address)
}

// follow opens a database in the place of one that is gone.
func (d *DB) follow(ctx context.Context, gone *Shard, address string) (*Shard, error) {
	n, err := d.reopen(ctx, gone.Ordinal, address)
	if err != nil {
		return nil, err
	}
	if _, err = n.Write.ExecContext(ctx, SQLBeginShard); err != nil {
		return nil, errors.Join(fmt.Errorf("shard %d (%s): %w", n.Ordinal, n.Name, d.Dialect.StorageError(ctx, err)), n.close())
	}
	return n, nil
}

// reopen opens a database of which the store says that it is a shard, by its stored address, and brings its tables up to date.
func (d *DB) reopen(ctx context.Context, ordinal int, address string) (*Shard, error) {
	address, err := d.withCredentials(address)
	if err != nil {
		return nil, err
	}
	opened, err := d.connect(ctx, d.cfg.existing(), ordinal, []string{address})
	if err != nil {
		return nil, err
	}
	if err = d.haveTables(ctx, opened); err == nil {
		err = d.migrate(ctx, opened)
	}
	if err != nil {
		return nil, errors.Join(err, opened[0].close())
	}
	return opened[0], nil
}

// followed makes the list of shards ready for use: databases that have taken the place of others are in it
// instead of those, and shards that have been removed are left out.
func (d *DB) followed(ctx context.Context, shards []*Shard) ([]*Shard, error) {
	for i := 0; i < len(shards); {
		n := shards[i]
		epoch, err := d.epochOf(ctx, n)
		if err != nil {
			return shards, err
		}
		if epoch >= 0 {
			i++
			continue
		}
		next, err := d.successor(ctx, n)
		switch {
		case errors.Is(err, errRemoved):
			for _, n := range shards[i:] { // those behind have been removed before
				_ = n.close()
			}
			return shards[:i], nil
		case err != nil:
			return shards, err
		}
		_ = n.close() // nothing is under way there
		shards[i] = next
	}
	return shards, nil
}

// Beside opens an empty database that is to take the place of a shard, as the only shard of the DB
// that it returns. Its address is in the form of [DB.Plain]. [ErrPlaced].
func (d *DB) Beside(ctx context.Context, ordinal int, plain string) (*DB, error) {
	n, err := d.prepare(ctx, ordinal, plain)
	if err != nil {
		return nil, err
	}
	beside := &DB{Dialect: d.Dialect, Map: shard.NewMap(1), UUID: d.UUID, cfg: d.cfg}
	beside.shards.Store(&[]*Shard{n})
	epoch, err := d.epochOf(ctx, n)
	if err == nil && epoch == 0 {
		epoch = goneEpoch - 1
		_, err = n.Write.ExecContext(ctx, sqlWaitingEpoch)
	}
	if err == nil && epoch >= goneEpoch {
		err = fmt.Errorf("%w: %s has been a shard before: take an empty database", storage.ErrLayout, n.Name)
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return beside, nil
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

// isNone returns an error if a database is a shard, or of another engine.
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
		case known == id && i == n.Ordinal:
			return ErrPlaced
		case known == id:
			return fmt.Errorf("%w: %s is shard %d already", storage.ErrLayout, n.Name, i)
		}
	}
	return nil
}

// RecordShard records the address of a shard that was added to the store, when another database takes its
// place. Addresses of shards of the beginning are given, not recorded.
func (d *DB) RecordShard(ctx context.Context, ordinal int, plain string) error {
	return d.Transact(ctx, "shards", 0, func(tx *Tx) error {
		_, err := tx.Exec(1, sqlMoveShard, plain, ordinal)
		return err
	})
}

// replace makes the successor of a shard known.
func (d *DB) replace(next *Shard) {
	d.change(func(list []*Shard) []*Shard {
		d.replaced = append(d.replaced, list[next.Ordinal])
		list[next.Ordinal] = next
		return list
	})
}

// change changes the list of shards. Readers have the list from before or from after the change.
func (d *DB) change(f func([]*Shard) []*Shard) {
	d.changing.Lock()
	defer d.changing.Unlock()
	list := f(slices.Clone(d.All()))
	d.shards.Store(&list)
	d.changes++
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// Changes is how often shards have been added or replaced since the store was opened.
func (d *DB) Changes() int {
	d.changing.Lock()
	defer d.changing.Unlock()
	return d.changes
}

// Changed is closed once shards have been added or replaced more often than a number.
func (d *DB) Changed(than int) <-chan struct{} {
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.changes > than {
		already := make(chan struct{})
		close(already)
		return already
	}
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}
