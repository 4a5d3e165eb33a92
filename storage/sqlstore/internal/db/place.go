package db

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// A location may name an added shard, too. Then it has to be the database that shard 0 lists: processes whose location leaves it
// out use that one, and each of two databases would get a part of the writes. [DB.Readmit] lists another one.

// errReplaced is the error of a process that has a shard open which has got another database since. [storage.ErrUnavailable].
var errReplaced = fmt.Errorf("%w: the store has the shard in another database since this process opened it: start it again, without the old address in KITH_STORE", storage.ErrUnavailable)

// keepPlaces compares the added shards that are open with the list: at the start each has to be the listed database, and later
// the list has to stay as it is.
func (d *DB) keepPlaces(ctx context.Context, listed map[int]string) error {
	for _, n := range d.All()[d.laidOut:] {
		switch at := listed[n.Ordinal]; {
		case at == n.listed:
			continue
		case n.listed == "" && !d.cfg.Readmits:
			if err := d.isPlaced(ctx, n, at); err != nil {
				return err
			}
		case n.listed != "":
			own, err := d.plain(n.Address) // it is that of the new database in the process that lists it
			n.replaced.Store(err != nil || own != at)
		}
		n.listed = listed[n.Ordinal]
	}
	return nil
}

// sqlPlaceShard records on shard 0 where an added shard is now.
const sqlPlaceShard = `
REPLACE INTO kith_shards (ordinal, address)
VALUES (?, ?)`

// isPlaced returns [storage.ErrLayout] if a shard that is given is not the listed database.
func (d *DB) isPlaced(ctx context.Context, n *Shard, listed string) error {
	other, err := d.otherThan(ctx, n, listed)
	if other == nil && err == nil {
		return nil
	}
	is := errors.New("another database")
	if err != nil {
		is = fmt.Errorf("perhaps another database, as the former does not answer (%w)", d.Dialect.StorageError(ctx, err))
	} else if err := other.close(); err != nil {
		return err
	}
	return fmt.Errorf("%w: the store has shard %d at %s, and %s is %w: leave it out of KITH_STORE or, if it takes the other's place, run kith shards readmit %[2]d",
		storage.ErrLayout, n.Ordinal, listed, n.Name, is)
}

// otherThan opens the listed database if a shard is another one; nil if it is the same, by whatever address. The caller closes it.
func (d *DB) otherThan(ctx context.Context, n *Shard, listed string) (*Shard, error) {
	own, err := d.plain(n.Address)
	if err != nil || own == listed {
		return nil, err
	}
	address, err := d.withCredentials(listed)
	if err != nil {
		return nil, err
	}
	opened, err := d.connect(ctx, d.cfg.existing(), n.Ordinal, []string{address})
	if err != nil {
		return nil, err
	}
	known, err := d.Dialect.identity(ctx, opened[0])
	if err == nil {
		own, err = d.Dialect.identity(ctx, n)
	}
	if err != nil || own == known {
		_ = opened[0].close() // nothing is under way there
		return nil, err
	}
	return opened[0], nil
}

// replace lists a shard's database in the place of another one, to which nothing is written any more. If that one does not
// answer, processes that have it open learn from the list.
func (d *DB) replace(ctx context.Context, n *Shard) error {
	if n.Ordinal < d.laidOut {
		return nil
	}
	listed, err := d.listed(ctx)
	if err != nil {
		return err
	}
	other, err := d.otherThan(ctx, n, listed[n.Ordinal])
	if other == nil && err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if other != nil {
		_, err := other.migrations.ExecContext(ctx, sqlDismiss)
		if err = errors.Join(err, other.close()); err != nil && !isNoTable(err) {
			return fmt.Errorf("end the writes to %s: %w", other.Name, d.Dialect.StorageError(ctx, err))
		}
	}
	plain, err := d.Plain(n.Address)
	if err != nil {
		return err
	}
	return d.Transact(ctx, "shards", 0, func(tx *Tx) error {
		_, err := tx.Exec(1, sqlPlaceShard, n.Ordinal, plain)
		return err
	})
}
